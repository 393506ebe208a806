"""API keys: created, stored as hashes, and verified when a caller sends one. Knows the store."""
