"""Prompts and answers: prompts fitted to a context, structured answers, tools on documents, clean texts.

It knows trace labels, and nothing of endpoints, routes or calls.
"""
