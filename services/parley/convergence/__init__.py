"""Embeddings, agreement, stop decisions, grouping.

It keeps nothing, and knows what services share and the contract.
"""
