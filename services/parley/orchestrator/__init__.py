"""Debates: formats, phases, the engine that runs them, and the log they are recorded in.

It knows the stores, what services share and the contract, and no other service.
"""
