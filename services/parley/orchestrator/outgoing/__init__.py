"""Requests to addresses of others: which may be reached, and the guard that keeps to it. Knows no other room of the orchestrator."""
