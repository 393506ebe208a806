"""Agents and the way to their models: providers, routes, breakers, fallback.

It knows the file that a person writes, the stores, what services share and the contract; it knows no debate.
"""
