"""An example debate that can be shown without a system: its events, its state and its report.

People wrote its texts; no model did. It may import the orchestrator, which folds its events, and the contract.
"""

from parley.example.record import LOG, ExampleDebate, read_example

__all__ = ["LOG", "ExampleDebate", "read_example"]
