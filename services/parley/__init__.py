"""Puts a question to several AI agents that debate it, and answers with a trace."""
