"""Budgets of API keys, as people read them."""

from parley.v1.key_pb2 import KeyBudget


def budget_fields(budget: KeyBudget | None) -> dict[str, str]:
    """Return the fields of a budget that people may see, by name; `-`: no limit."""
    tokens = budget.tokens_per_day if budget else 0
    micros = budget.cost_micros_per_day if budget else 0
    return {
        "tokens_per_day": str(tokens) if tokens else "-",
        "usd_per_day": f"{micros / 1e6:.2f}" if micros else "-",
    }
