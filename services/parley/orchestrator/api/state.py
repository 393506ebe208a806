"""The state of a debate, folded from its log so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from parley.orchestrator.log.index import CANCELLED, COMPLETED, PENDING
from parley.orchestrator.model.spec import agents_of
from parley.v1.agent_pb2 import Agent, Usage
from parley.v1.arena_pb2 import TricksterFinding
from parley.v1.debate_pb2 import (
    Clarification,
    Contribution,
    DebateFailure,
    DebateSpec,
    DraftGroups,
    FailedContribution,
    Outcome,
    Requirement,
    Waiting,
)
from parley.v1.event_pb2 import (
    Intervened,
    RoundsEnded,
)

__all__ = ["DebateState"]


@dataclass(frozen=True, slots=True)
class DebateState:
    """A debate, folded from its log.

    Attributes:
        status: One of the states in log/index.py.
        phase: The state that its format named last, or else of the step started last, such as `round 1 proposal`; empty
            before the first.
        team: Those of the specification's agents that debate; None: all of them.
        joined: Agents that came into being while it ran.
        contributions: Agents' answers, the latest of each step, in the order of the log.
        failures: Steps whose latest outcome is a failure, in the order of the log.
        sequences: Of the event that recorded each contribution and each failure, by the key of its step.
        failure: Why it failed, while the status is FAILED.
        usage: Of every attempt at every step, failed ones too.
        calls: Attempts at agents' steps that have ended.
        current_round: Rounds begun; `max_rounds`: rounds at most.
        begun_rounds: The numbers of the rounds that were begun, in order: a format may leave numbers out.
        rounds_ended_by: Why the rounds ended before the last, as a text; empty if they did not, or a limit ended them.
        interventions: In the order of the log.
        first_drafts: How the first drafts group; None if that is unknown or uncertain.
        clarifications: Questions that are closed, in the order of the log.
        requirements: What an answer has to meet, in the order of their numbers.
        recalled: Ids of the past debates that the agents were shown.
        waiting: What it waits for, while the status is WAITING; of several checkpoints, the one that was opened first.
        open_checkpoints: Those that a person is waited for at, or will be once the debate goes on, oldest first.
        ended_by: The limit that ended it early, such as `total_timeout`; empty for none.
        trickster: What the trickster has found, in the order of the log.
        rounds_ended: Why the rounds ended; unset before that, and if its format does not record it.
        concluded_at: When it ended for good; None before.
        answer_key: The key of the step that answers, once it has begun; empty before.
    """

    debate: str
    spec: DebateSpec
    is_demonstration: bool
    created_at: datetime
    updated_at: datetime
    last_sequence: int
    status: str = PENDING
    phase: str = ""
    team: tuple[str, ...] | None = None
    joined: tuple[Agent, ...] = ()
    contributions: tuple[Contribution, ...] = ()
    failures: tuple[FailedContribution, ...] = ()
    sequences: Mapping[str, int] = field(default_factory=dict)
    outcome: Outcome | None = None
    failure: DebateFailure | None = None
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    warnings: tuple[str, ...] = ()
    current_round: int = 0
    begun_rounds: tuple[int, ...] = ()
    max_rounds: int = 0
    rounds_ended_by: str = ""
    first_drafts: DraftGroups | None = None
    interventions: tuple[Intervened, ...] = ()
    clarifications: tuple[Clarification, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    recalled: tuple[str, ...] = ()
    waiting: Waiting | None = None
    open_checkpoints: tuple[Waiting, ...] = ()
    ended_by: str = ""
    trickster: tuple[TricksterFinding, ...] = ()
    rounds_ended: RoundsEnded = field(default_factory=RoundsEnded)
    concluded_at: datetime | None = None
    answer_key: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether it ended for good, with an answer or by an intervention."""
        return self.status in {COMPLETED, CANCELLED}

    @property
    def participants(self) -> tuple[Agent, ...]:
        """Those who debate: the specification's agents, or the team chosen of them, then those who joined."""
        seated = (each for each in agents_of(self.spec) if self.team is None or each.id in self.team)
        return (*seated, *self.joined)
