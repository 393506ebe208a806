"""The sharing of one call by several callers: who listens to it, which replica makes it, and where its answer is kept.

It gets the function that answers a call, and knows nothing of routes or endpoints.
"""
