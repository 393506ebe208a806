"""An example debate, to be looked at where no system runs: its record, its state and its report.

People wrote its texts; no model did. It may know the orchestrator, which says what a record means, and the contract.
"""

from parley.example.record import LOG, ExampleDebate, read_example

__all__ = ["LOG", "ExampleDebate", "read_example"]
