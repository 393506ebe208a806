"""The log of a debate: its events, how they are chained, written and folded, and the index that finds debates. Knows the model."""
