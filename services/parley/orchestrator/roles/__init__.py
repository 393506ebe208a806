"""Roles: what an agent of a role is told, one Markdown file a role. Knows no other room of the orchestrator."""
