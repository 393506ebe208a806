"""The ways to receivers, one module a kind."""
