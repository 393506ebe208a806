"""What each agent of a debate is at and what it said last, as a fold of events and of text as it comes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from parley.cli.terminal.words import work_phase_text
from parley.client import Event, TextPiece, event_payload
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

__all__ = ["MAX_TEXT", "AgentProgress", "AgentsProgress", "StepProgress", "apply_event", "apply_text"]

MAX_TEXT: Final = 4000
"""Characters kept of a text: more than any panel shows, and little enough to be drawn often."""


@dataclass(frozen=True, slots=True)
class StepProgress:
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
class AgentProgress:
    """One agent.

    Attributes:
        debates: Whether it is one of those that debate, rather than their judge.
        position: The latest stand it took, in a sentence; empty where it stated none.
        steps: Its steps in flight by key, in the order they began.
        latest_text: What it said last, as people read it: the beginning.
        latest_phase: What that was, such as `round 1 proposal`; or how it failed.
    """

    id: str
    role: str = ""
    debates: bool = False
    position: str = ""
    steps: Mapping[str, StepProgress] = field(default_factory=dict)
    latest_text: str = ""
    latest_phase: str = ""


AgentsProgress = Mapping[str, AgentProgress]
"""Agents by id: those that debate, in their order, then others that did something."""


def apply_event(agents: AgentsProgress, event: Event) -> AgentsProgress:  # noqa: PLR0911 (a case a kind)
    """Return the agents after an event. Kinds that change nothing are passed over."""
    payload = event_payload(event)
    match payload:
        case DebateCreated(spec=spec):
            return {each.id: each for each in _debaters(spec)}
        case TeamSelected(agent_ids=team):
            return {name: each for name, each in agents.items() if name in team or not each.debates}
        case ParticipantJoined(agent=joined):
            return {**agents, joined.id: AgentProgress(joined.id, joined.role, debates=True)}
        case StepStarted(work=work, is_structured=is_structured) if work.agent_id:
            agent = _agent(agents, work)
            steps = {**agent.steps, event.key: StepProgress(work, is_structured)}
            return {**agents, agent.id: replace(agent, steps=steps)}
        case StepSucceeded(work=work, reply=reply) if work.agent_id:
            return {
                **agents,
                work.agent_id: _set_reply(_remove_step(_agent(agents, work), event.key), work, reply),
            }
        case StepFailed(work=work, reason=reason) if work.agent_id:
            agent = _remove_step(_agent(agents, work), event.key)
            return {
                **agents,
                agent.id: replace(
                    agent, latest_text="", latest_phase=f"{work_phase_text(work)} failed: {reason}"
                ),
            }
        case Claimed() | Resumed() | WaitStarted() | Paused() | DebateFailed() | Concluded():
            return {
                name: replace(each, steps={}) for name, each in agents.items()
            }  # what was in flight is void
        case _:
            return agents


def apply_text(agents: AgentsProgress, piece: TextPiece) -> AgentsProgress:
    """Return the agents after more text of a step in flight; text of any other step is passed over."""
    for name, agent in agents.items():
        step = agent.steps.get(piece.key)
        if step is not None:
            steps = {**agent.steps, piece.key: _append_text(step, piece)}
            return {**agents, name: replace(agent, steps=steps)}
    return agents


def _debaters(spec: DebateSpec) -> Iterator[AgentProgress]:
    for each in spec.agents:
        yield AgentProgress(each.agent.id or each.agent_id, each.agent.role, debates=True)


def _agent(agents: AgentsProgress, work: Work) -> AgentProgress:
    return agents.get(work.agent_id) or AgentProgress(work.agent_id)


def _remove_step(agent: AgentProgress, key: str) -> AgentProgress:
    return replace(agent, steps={other: each for other, each in agent.steps.items() if other != key})


def _set_reply(agent: AgentProgress, work: Work, reply: Reply) -> AgentProgress:
    of_whom = f" of {work.target_agent_id}" if work.target_agent_id else ""
    return replace(
        agent,
        position=reply.position or agent.position,
        latest_text=(reply.rendered or reply.text)[:MAX_TEXT],
        latest_phase=f"{work_phase_text(work)}{of_whom}",
    )


def _append_text(step: StepProgress, piece: TextPiece) -> StepProgress:
    attempt = (piece.step_attempt, piece.route_attempt)
    if attempt < step.attempt:
        return step
    if attempt > step.attempt:
        step = replace(step, attempt=attempt, length=0, text="")
    new = piece.text[max(step.length - piece.offset, 0) :]
    length = max(step.length, piece.offset + len(piece.text))
    return replace(step, length=length, text=(step.text + new)[-MAX_TEXT:])
