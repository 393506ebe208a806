"""What a model is told and what it says: prompts fitted to a context, structured answers, tools on documents, clean texts.

It knows trace labels, and nothing of endpoints, routes or calls.
"""
