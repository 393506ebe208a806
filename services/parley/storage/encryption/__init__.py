"""Encryption at rest: what services store, under data keys that the operator's key wraps. Without such a key nothing is encrypted."""
