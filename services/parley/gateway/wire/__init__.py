"""The HTTP side of one endpoint: its two APIs, its streams and errors, and what it turned out to be capable of.

It knows prompts and failures, and nothing of routes, breakers or calls.
"""
