"""The evaluation: agents judge the answer of a finished debate in seven dimensions."""

from parley.orchestrator.formats.evaluation.v1 import V1

__all__ = ["V1"]
