"""Kinds of providers, one module a kind: the address of each, how it is asked and what it calls a key.

It knows the HTTP side of endpoints and the entries of the agents file, and nothing of routes or calls.
"""
