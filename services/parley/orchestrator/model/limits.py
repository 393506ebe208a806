"""Names of the limits of a debate, as its log and its state give them."""

__all__ = ["COST_BUDGET", "ROUND_TIMEOUT", "TOKEN_BUDGET", "TOTAL_TIMEOUT"]

ROUND_TIMEOUT = "round_timeout"
TOTAL_TIMEOUT = "total_timeout"
TOKEN_BUDGET = "token_budget"  # noqa: S105 - tokens of a model
COST_BUDGET = "cost_budget"
