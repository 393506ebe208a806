"""Following a debate: its events from the log, text of steps in flight, from any replica. Knows the log and the model."""
