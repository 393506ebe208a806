"""API keys: made, kept as hashes, and known again when a caller shows one. Knows the store."""
