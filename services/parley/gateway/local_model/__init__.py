"""A small language model on this machine, for when no key and no base URL is set.

It knows nothing else of the gateway.
"""
