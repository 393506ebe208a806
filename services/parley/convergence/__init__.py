"""Embeddings, agreement, stop decisions, grouping."""
