"""Names of the limits of a debate, as its log and its state give them."""

ROUND_TIMEOUT = "round_timeout"
TOTAL_TIMEOUT = "total_timeout"
TOKEN_BUDGET = "token_budget"  # noqa: S105 - tokens of a model
COST_BUDGET = "cost_budget"
