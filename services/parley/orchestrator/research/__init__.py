"""Research: what is read on the web for a debate, through a guard on outgoing requests, and what MCP servers answer. Knows no other room of the orchestrator."""
