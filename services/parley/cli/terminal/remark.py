"""What an answer came from and what it took, in one line."""

from collections.abc import Iterator
from typing import Final

from parley.cli.terminal.agreement import agreement_texts
from parley.cli.terminal.words import cost_text, duration_text, run_seconds
from parley.client import Debate
from parley.v1.debate_pb2 import (
    STOP_REASON_AGENTS_READY,
    STOP_REASON_ALL_ROUNDS_HELD,
    STOP_REASON_CLEAR_WINNER,
    STOP_REASON_CONFIDENCE_REACHED,
    STOP_REASON_CONVERGED,
    STOP_REASON_COST_BUDGET,
    STOP_REASON_JUDGE,
    STOP_REASON_PERSON,
    STOP_REASON_PROBABLE_ENOUGH,
    STOP_REASON_QUALITY_REACHED,
    STOP_REASON_STABLE_DISAGREEMENT,
    STOP_REASON_STABLE_POSITIONS,
    STOP_REASON_STAGNATION,
    STOP_REASON_TOKEN_BUDGET,
    STOP_REASON_TOTAL_TIMEOUT,
    STOP_REASON_UNANIMOUS_DRAFTS,
)

__all__ = ["summary_line"]

_STOP_REASONS: Final = {
    STOP_REASON_ALL_ROUNDS_HELD: "all rounds held",
    STOP_REASON_CONVERGED: "ended by agreement",
    STOP_REASON_STABLE_DISAGREEMENT: "ended by stable disagreement",
    STOP_REASON_QUALITY_REACHED: "ended by quality",
    STOP_REASON_TOTAL_TIMEOUT: "ended by its time limit",
    STOP_REASON_TOKEN_BUDGET: "ended by its budget of tokens",
    STOP_REASON_COST_BUDGET: "ended by its budget of money",
    STOP_REASON_PERSON: "ended by a person",
    STOP_REASON_AGENTS_READY: "ended since the agents were ready",
    STOP_REASON_CONFIDENCE_REACHED: "ended by confidence",
    STOP_REASON_JUDGE: "ended by the judge",
    STOP_REASON_UNANIMOUS_DRAFTS: "no debate, since the first drafts agree",
    STOP_REASON_STABLE_POSITIONS: "ended since positions hardly changed",
    STOP_REASON_PROBABLE_ENOUGH: "no debate, since the best rated were sure enough",
    STOP_REASON_STAGNATION: "ended since nothing new was said",
    STOP_REASON_CLEAR_WINNER: "ended since one side had won",
}
"""Why the rounds ended, in few words."""


def summary_line(debate: Debate) -> str:
    """Return `2 of 3 first drafts agree (ada, bo) · all rounds held · scores: ada 8, bo 7.5 · m · 7 calls · 1,234 tokens · $0.01 · 5 s`."""
    return " · ".join(_summary_parts(debate))


def _summary_parts(debate: Debate) -> Iterator[str]:
    if debate.demonstration:
        yield "demonstration"
    yield from agreement_texts(debate)
    if debate.stop_reason in _STOP_REASONS:
        yield _STOP_REASONS[debate.stop_reason]
    if debate.outcome.scores:
        yield f"scores: {', '.join(f'{each.agent_id} {each.score:.3g}' for each in debate.outcome.scores)}"
    models = dict.fromkeys(each.reply.model for each in debate.contributions if each.reply.model)
    if models:
        yield ", ".join(models)
    yield "1 call" if debate.calls == 1 else f"{debate.calls} calls"
    usage = debate.usage
    yield f"{usage.input_tokens + usage.output_tokens:,} tokens"
    if usage.HasField("cost_micros"):
        yield cost_text(usage.cost_micros)
    yield duration_text(run_seconds(debate))
