"""The models that a system loads at its first use, loaded when this is imported: its forks need not, which takes half of their start."""

from parley.convergence.models import load_local_model

MODELS = load_local_model("minilm"), load_local_model("static")
"""Held, since a model is released with its last user."""
