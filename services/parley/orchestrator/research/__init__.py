"""Research: what is read on the web for a debate, through a guard on outgoing requests. Knows no other room of the orchestrator."""
