"""What the services call things, as people call them."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from parley.cli.state import enum_word
from parley.v1.orchestrator_pb2 import ContributionKind, FailedContribution

__all__ = ["doing", "failure_lines", "moment", "phase_of", "phase_words", "rounds_words"]

_NOUNS: Final[Mapping[str, str]] = {
    "recall": "search for past debates",
    "first-draft-vote": "vote over the first drafts",
    "convergence": "check for agreement",
    "assessment": "scores for the work",
}
_DOING: Final[Mapping[str, str]] = {
    "proposal": "proposes",
    "critique": "criticizes",
    "refinement": "refines",
    "summary": "summarizes",
    "synthesis": "writes the answer",
    "assessment": "scores the work",
    "recall": "looking for past debates",
    "first-draft-vote": "comparing the first drafts",
    "convergence": "checking for agreement",
    "ratings": "recording the ratings",
    "memory": "remembering the debate",
}


def phase_words(phase: str) -> str:
    """`round 1 vote over the first drafts` of `round 1 first-draft-vote`; an activity alone is taken too."""
    before, space, activity = phase.rpartition(" ")
    return f"{before}{space}{_NOUNS.get(activity, activity)}"


def doing(activity: str) -> str:
    """`criticizes`: what an agent, or a service, is at."""
    return _DOING.get(activity, activity)


def rounds_words(number: int) -> str:
    """`1 round`, `2 rounds`."""
    return f"{number} round" if number == 1 else f"{number} rounds"


def phase_of(failed: FailedContribution) -> str:
    """`round 1 proposal`, as the services call it."""
    kind = enum_word(ContributionKind.Name(failed.kind), "ContributionKind")
    return f"round {failed.round} {kind}" if failed.round else kind


def failure_lines(failures: Iterable[FailedContribution]) -> Iterator[str]:
    """`ada, bo in round 1 proposal: PROVIDER_AUTH: …`: what failed alike is one line."""
    agents: dict[tuple[str, str, str], list[str]] = {}
    for each in failures:
        agents.setdefault((phase_of(each), each.reason, each.message), []).append(each.agent_id)
    for (phase, reason, message), names in agents.items():
        yield f"{', '.join(dict.fromkeys(names))} in {phase_words(phase)}: {reason}: {message}"


def moment(time: Timestamp) -> str:
    """The time on this machine's clock, such as `2026-11-21 14:05:09`."""
    return time.ToDatetime(UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
