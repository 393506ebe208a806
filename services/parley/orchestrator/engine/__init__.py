"""The engine: runs a debate step by step, resumes it, keeps it to its limits, and claims it.

It knows the log, the peers and the model, and no format and no phase: formats are handed in.
"""
