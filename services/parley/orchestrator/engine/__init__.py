"""The engine: claims a debate, runs it step by step, resumes it and keeps it to its limits.

It knows the log, the peers and the model, but no format and no phase: they are passed in.
"""
