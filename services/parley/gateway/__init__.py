"""Agents and the way to their models: providers, routes, breakers, fallback."""
