"""Parley as an MCP server: tools and resources over a client of the orchestrator, for any transport. It has no state and no authority."""
