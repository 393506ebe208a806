"""The edge: requests checked, answers made of the log. It knows the engine, watching and the rooms below."""
