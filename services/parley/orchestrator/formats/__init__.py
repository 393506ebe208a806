"""Formats: orders of phases, one folder each. They know the phases and the engine's handle; no layer below knows them."""
