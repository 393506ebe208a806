"""What each agent of a debate is at and what it said last, as a fold of events and of text as it comes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from parley.cli.terminal.words import phase_of
from parley.client import Event, TextPiece, payload_of
from parley.v1.debate_pb2 import DebateSpec, Reply, Work
from parley.v1.event_pb2 import (
    Claimed,
    Concluded,
    DebateCreated,
    DebateFailed,
    ParticipantJoined,
    Paused,
    Resumed,
    StepFailed,
    StepStarted,
    StepSucceeded,
    TeamSelected,
    WaitStarted,
)

__all__ = ["MAX_KEPT", "AgentAtWork", "AgentsAtWork", "Step", "event_seen", "text_seen"]

MAX_KEPT: Final = 4000
"""Characters kept of a text: more than any panel shows, and little enough to be drawn often."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step in flight.

    Attributes:
        is_structured: Whether its text is JSON, which is not for people.
        attempt: The attempt at the step and at the route that the text is of.
        length: Characters of the attempt's text so far.
        text: The end of it.
    """

    work: Work
    is_structured: bool = False
    attempt: tuple[int, int] = (0, 0)
    length: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class AgentAtWork:
    """One agent.

    Attributes:
        debates: Whether it is one of those that debate, rather than their judge.
        position: The latest stand it took, in a sentence; empty where it stated none.
        steps: Its steps in flight by key, in the order they began.
        said: What it said last, as people read it: the beginning.
        said_in: What that was, such as `round 1 proposal`; or how it failed.
    """

    id: str
    role: str = ""
    debates: bool = False
    position: str = ""
    steps: Mapping[str, Step] = field(default_factory=dict)
    said: str = ""
    said_in: str = ""


AgentsAtWork = Mapping[str, AgentAtWork]
"""Agents by id: those that debate, in their order, then others that did something."""


def event_seen(agents: AgentsAtWork, event: Event) -> AgentsAtWork:  # noqa: PLR0911 (a case a kind)
    """Return the agents after an event. Kinds that change nothing are passed over."""
    payload = payload_of(event)
    match payload:
        case DebateCreated(spec=spec):
            return {each.id: each for each in _debaters(spec)}
        case TeamSelected(agent_ids=team):
            return {name: each for name, each in agents.items() if name in team or not each.debates}
        case ParticipantJoined(agent=joined):
            return {**agents, joined.id: AgentAtWork(joined.id, joined.role, debates=True)}
        case StepStarted(work=work, is_structured=is_structured) if work.agent_id:
            agent = _agent(agents, work)
            steps = {**agent.steps, event.key: Step(work, is_structured)}
            return {**agents, agent.id: replace(agent, steps=steps)}
        case StepSucceeded(work=work, reply=reply) if work.agent_id:
            return {**agents, work.agent_id: _heard(_without(_agent(agents, work), event.key), work, reply)}
        case StepFailed(work=work, reason=reason) if work.agent_id:
            agent = _without(_agent(agents, work), event.key)
            return {**agents, agent.id: replace(agent, said="", said_in=f"{phase_of(work)} failed: {reason}")}
        case Claimed() | Resumed() | WaitStarted() | Paused() | DebateFailed() | Concluded():
            return {
                name: replace(each, steps={}) for name, each in agents.items()
            }  # what was in flight is void
        case _:
            return agents


def text_seen(agents: AgentsAtWork, piece: TextPiece) -> AgentsAtWork:
    """Return the agents after more text of a step in flight; text of any other step is passed over."""
    for name, agent in agents.items():
        step = agent.steps.get(piece.key)
        if step is not None:
            steps = {**agent.steps, piece.key: _with_piece(step, piece)}
            return {**agents, name: replace(agent, steps=steps)}
    return agents


def _debaters(spec: DebateSpec) -> Iterator[AgentAtWork]:
    for each in spec.agents:
        yield AgentAtWork(each.agent.id or each.agent_id, each.agent.role, debates=True)


def _agent(agents: AgentsAtWork, work: Work) -> AgentAtWork:
    return agents.get(work.agent_id) or AgentAtWork(work.agent_id)


def _without(agent: AgentAtWork, key: str) -> AgentAtWork:
    return replace(agent, steps={other: each for other, each in agent.steps.items() if other != key})


def _heard(agent: AgentAtWork, work: Work, reply: Reply) -> AgentAtWork:
    of_whom = f" of {work.target_agent_id}" if work.target_agent_id else ""
    return replace(
        agent,
        position=reply.position or agent.position,
        said=(reply.rendered or reply.text)[:MAX_KEPT],
        said_in=f"{phase_of(work)}{of_whom}",
    )


def _with_piece(step: Step, piece: TextPiece) -> Step:
    attempt = (piece.step_attempt, piece.route_attempt)
    if attempt < step.attempt:
        return step
    if attempt > step.attempt:
        step = replace(step, attempt=attempt, length=0, text="")
    new = piece.text[max(step.length - piece.offset, 0) :]
    length = max(step.length, piece.offset + len(piece.text))
    return replace(step, length=length, text=(step.text + new)[-MAX_KEPT:])
