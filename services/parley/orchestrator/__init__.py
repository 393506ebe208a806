"""Debates: formats, phases, and the log they are recorded in."""
