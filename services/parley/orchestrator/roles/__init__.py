"""Roles: the prompts that an agent of a role gets, one Markdown file a role. Knows no other room of the orchestrator."""
