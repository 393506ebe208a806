"""Vectors in Qdrant: its engine in this process, or its server. It knows the ports, and no document and no log."""
