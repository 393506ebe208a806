"""Watching a debate from any replica: its events from the log, and the text of steps in flight. Knows the log and the model."""
