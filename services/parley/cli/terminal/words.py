"""The contract's values as short texts for people; statuses in groups; text cut to a width."""

from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import Final

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.timestamp_pb2 import Timestamp

from parley.client import DebateStatus
from parley.runtime.printable import printable, printable_line
from parley.runtime.work_words import AFTER_THE_ANSWER, phase_text
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_CANCELLED,
    DEBATE_STATUS_COMPLETED,
    DEBATE_STATUS_FAILED,
    DEBATE_STATUS_PAUSED,
    DEBATE_STATUS_PENDING,
    DEBATE_STATUS_RUNNING,
    DEBATE_STATUS_WAITING,
    Debate,
    DebateEstimate,
    FailedContribution,
    Work,
)
from parley.v1.effect_pb2 import DECISION_RELATION_OTHER_MATTER, DecisionRelation, RelatedDecision


def enum_text(enum: EnumDescriptor, number: int) -> str:
    """Return `completed` for DEBATE_STATUS_COMPLETED of DebateStatus; the number if only a newer server knows it."""
    value = enum.values_by_number.get(number)
    if value is None:
        return str(number)
    prefix = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in enum.name).lstrip("_")
    return str(value.name).removeprefix(f"{prefix}_").lower()


def relation_text(related: RelatedDecision) -> str:
    """Return how an answer stands to an earlier decision: `Reverses`, or `Is about another matter than`."""
    if related.relation == DECISION_RELATION_OTHER_MATTER:
        return "Is about another matter than"
    return enum_text(DecisionRelation.DESCRIPTOR, related.relation).capitalize()


def work_phase_text(work: Work) -> str:
    """Return the phase of a step: `round 1 proposal`."""
    return phase_text(work.title or work.activity, work.round)


def step_text(work: Work) -> str:
    """Return `ada critique of bo`."""
    target = f"of {work.target_agent_id}" if work.target_agent_id else ""
    return " ".join(part for part in (work.agent_id, work.title or work.activity, target) if part)


def debating_agents(debate: Debate) -> list[Agent]:
    """Return the agents that debate: those of its specification or the selected team, then those that joined while it ran."""
    if debate.only_joined_debate:
        return list(debate.joined)
    began = [each.agent for each in debate.spec.agents]
    team = debate.team_agent_ids or [each.id for each in began]
    return [*(each for each in began if each.id in team), *debate.joined]


def rounds_text(number: int) -> str:
    """Return `1 round`, `2 rounds`."""
    return f"{number} round" if number == 1 else f"{number} rounds"


def failure_lines(failures: Iterable[FailedContribution]) -> Iterator[str]:
    """Yield `ada, bo in round 1 proposal: PROVIDER_AUTH: …`, or the work alone if no agent did it; equal failures are one line."""
    agents: dict[tuple[str, str, str], list[str]] = {}
    for each in failures:
        agents.setdefault((work_phase_text(each.work), each.reason, each.message), []).append(
            each.work.agent_id
        )
    for (phase, reason, message), names in agents.items():
        whose = ", ".join(dict.fromkeys(filter(None, names)))
        yield f"{f'{whose} in ' if whose else ''}{phase}: {reason}: {message}"


def cost_text(micros: int) -> str:
    """Return millionths of a dollar as dollars: `$0.0123`, `$0` or `less than $0.0001`."""
    if not micros:
        return "$0"
    return f"${micros / 1e6:.4f}" if micros >= 100 else "less than $0.0001"


def calls_text(debate: Debate) -> str:
    """Return `16 of at most 42 calls`, or `44 calls, 42 expected`; `16 calls` if just these were expected, or it is not known how many.

    Calls after the answer are counted too, and told apart: the answer does not know them.
    """
    calls, most = debate.calls, debate.estimate.max_calls
    after = sum(each.key.startswith(AFTER_THE_ANSWER) for each in debate.contributions)
    later = f", {after} of them after the answer" if after else ""
    if 0 < most < calls:
        return f"{calls} calls, {most} expected{later}"
    if debate.status == DEBATE_STATUS_COMPLETED and calls < most:
        return f"{calls} of at most {most} calls{later}"
    return f"{'1 call' if calls == 1 else f'{calls} calls'}{later}"


def estimate_text(estimate: DebateEstimate) -> str:
    """Return `at least 14, at most 42 calls; about $0.02 to $0.06 by the prices of openai/gpt-5-mini`, or that no price is known."""
    fewest, most = estimate.min_calls, estimate.max_calls
    calls = f"{most} calls" if fewest == most else f"at least {fewest}, at most {most} calls"
    if not estimate.HasField("min_cost_micros"):
        unpriced = ", ".join(estimate.unpriced_routes)
        hint = f"; cost unknown: no price for {unpriced}; set input_price and output_price of a route in parley.yaml"
        return f"{calls}{hint if unpriced else ''}"
    low, high = (f"${micros / 1e6:,.2f}" for micros in (estimate.min_cost_micros, estimate.max_cost_micros))
    if not estimate.max_cost_micros:
        cost = "$0"
    elif high == "$0.00":
        cost = "less than $0.01"
    elif low == "$0.00":
        cost = f"at most about {high}"
    else:
        cost = f"about {low} to {high}" if low != high else f"about {low}"
    return f"{calls}; {cost} by the prices of {', '.join(estimate.priced_routes)}"


def run_seconds(debate: Debate) -> float:
    """Return the seconds from a debate's first event to its last."""
    return (debate.update_time.ToNanoseconds() - debate.create_time.ToNanoseconds()) / 1e9


def duration_text(seconds: float) -> str:
    """Return `4.2 s`, `3 min 5 s`, `2 h 10 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds) // 60
    return f"{minutes} min {int(seconds) % 60} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def local_time_text(time: Timestamp) -> str:
    """Return the time on this machine's clock, such as `2026-11-21 14:05:09`."""
    return time.ToDatetime(UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def utc_day_text(time: Timestamp) -> str:
    """Return the day in UTC, as answers and reports name it, such as `3 March 2026`."""
    day = time.ToDatetime(UTC)
    return f"{day.day} {day:%B %Y}"


ACTIVE: Final[frozenset[DebateStatus.ValueType]] = frozenset(
    {DEBATE_STATUS_PENDING, DEBATE_STATUS_RUNNING, DEBATE_STATUS_WAITING}
)
"""A system runs the debate, or should."""
RESUMABLE: Final[frozenset[DebateStatus.ValueType]] = frozenset({DEBATE_STATUS_PAUSED, DEBATE_STATUS_FAILED})
"""The debate does not go on until it is resumed."""
ENDED: Final[frozenset[DebateStatus.ValueType]] = frozenset(
    {DEBATE_STATUS_COMPLETED, DEBATE_STATUS_CANCELLED}
)
"""The debate has ended for good."""

SHORT_WIDTH: Final = 60
"""The characters of a text that stands in a line with more, such as the question of a debate."""


def to_line(text: str, width: int) -> str:
    """Return the text on one line, cut to the width."""
    return _cut(printable_line(text), width)


def find_first_line(text: str, width: int) -> str:
    """Return the first line that is not blank, cut to the width; empty if there is none."""
    return _cut(next((line.strip() for line in printable(text).splitlines() if line.strip()), ""), width)


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"
