"""The edge, as plain code."""
