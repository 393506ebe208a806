"""Vectors in Qdrant: its engine in this process, or its server. Knows the ports, and no document and no log."""
