"""What a debate is made of: its specification, tasks, contributions, ids. Knows no other room of the orchestrator."""
