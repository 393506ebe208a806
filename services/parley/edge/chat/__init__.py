"""Debates as models: what clients of OpenAI's chat completions ask, and get."""
