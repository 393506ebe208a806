"""The progress of a debate and of each of its agents, folded from events and from text in flight."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from google.protobuf.message import Message
from msgspec import Struct, field
from msgspec.structs import replace

from parley.cli.terminal.checkpoints import Checkpoint
from parley.cli.terminal.words import work_phase_text
from parley.client import Event, TextPiece, event_payload
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import DebateSpec, Reply, Work
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    Claimed,
    Concluded,
    DebateCreated,
    DebateFailed,
    Intervened,
    ParticipantJoined,
    Paused,
    PhaseFinished,
    PhaseStarted,
    Resumed,
    RoundAssessed,
    RoundFinished,
    RoundStarted,
    StepFailed,
    StepStarted,
    StepSucceeded,
    TeamSelected,
    WaitFinished,
    WaitStarted,
)


class PhaseProgress(Struct, frozen=True):
    """A phase that has begun and not finished.

    Attributes:
        activity: What its steps are for, a word for programs.
        title: The same for people; empty if `activity` is enough.
        failed: The keys of steps that failed, of those that ended, `done`.
    """

    activity: str
    round: int
    expected: int
    done: int = 0
    title: str = ""
    failed: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """What people call it."""
        return self.title or self.activity

    @property
    def count(self) -> str:
        """What became of its steps: `2/3`, or `1 of 3 answered, 1 failed`."""
        if not self.failed:
            return f"{self.done}/{self.expected}"
        return f"{self.done - len(self.failed)} of {self.expected} answered, {len(self.failed)} failed"

    def start(self, key: str) -> "PhaseProgress":
        """Return the phase after the start of a step: one that failed before is asked again, and counts as neither."""
        if key not in self.failed:
            return self
        return replace(self, done=self.done - 1, failed=self.failed - {key})

    def is_of(self, activity: str, number: int) -> bool:
        """Return whether steps of this activity in this round are part of it."""
        return (self.activity, self.round) == (activity, number)


class DebateProgress(Struct, frozen=True):
    """The progress of a debate at one event.

    Attributes:
        state: `waiting`, `running`, `paused`, `failed`, `completed` or `cancelled`.
        round: The latest round begun; 0 before the first.
        rounds: Rounds at most; 0 before the first.
        working: What is in flight, by step key, in the order it began.
        calls: Steps of agents that ended.
        cost_micros: Millionths of a US dollar; None once a price is unknown.
        completed_rounds: Rounds that are complete.
        rounds_ended_by: Why the rounds end early; empty if that is not known.
        failures: Phase, reason and message of steps that failed since the debate was last resumed.
        checkpoint: The open checkpoint, if there is one.
        cut_routes: Routes for whose context a prompt was cut.
        revision_rounds: How many of an arena's rounds are for revision: what `--rounds` asks for; 0 for other formats.
    """

    state: str = "waiting"
    round: int = 0
    rounds: int = 0
    phases: tuple[PhaseProgress, ...] = ()
    working: Mapping[str, StepStarted] = field(default_factory=dict)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = 0
    completed_rounds: int = 0
    rounds_ended_by: str = ""
    failures: frozenset[tuple[str, str, str]] = frozenset()
    checkpoint: Checkpoint | None = None
    cut_routes: frozenset[str] = frozenset()
    revision_rounds: int = 0


def advance(progress: DebateProgress, event: Event) -> DebateProgress:
    """Return the progress after an event. Kinds that change nothing are ignored."""
    payload = event_payload(event)
    match payload:
        case StepStarted() as started:
            phases = tuple(each.start(event.key) for each in progress.phases)
            return replace(progress, phases=phases, working={**progress.working, event.key: started})
        case StepSucceeded(work=work) as succeeded:
            usage = succeeded.reply.usage if succeeded.HasField("reply") else None
            ended = _finish_step(progress, event.key, work, usage)
            is_cut = succeeded.reply.prompt_characters_left_out > 0
            return replace(ended, cut_routes=ended.cut_routes | {succeeded.reply.route}) if is_cut else ended
        case StepFailed(work=work, reason=reason, message=message, usage=usage):
            failures = progress.failures | {(work_phase_text(work), reason, message)}
            ended = _finish_step(
                progress, event.key, work, usage if work.agent_id else None, failed={event.key}
            )
            return replace(ended, failures=failures)
        case CheckpointOpened() as opened:
            return replace(progress, state="waiting", checkpoint=Checkpoint(event.key, opened))
        case _:
            return _apply_to_rounds(_apply_to_state(progress, payload), payload)


def _apply_to_state(progress: DebateProgress, payload: Message | None) -> DebateProgress:  # noqa: PLR0911 (a case a kind)
    match payload:
        case DebateCreated(spec=spec):
            return replace(progress, revision_rounds=spec.arena.revision_rounds)
        case Claimed():  # what an earlier owner had in flight is void
            state = "waiting" if progress.checkpoint else "running"
            return replace(progress, state=state, working={}, failures=frozenset())
        case Resumed():
            return replace(progress, state="running", working={}, failures=frozenset(), checkpoint=None)
        case WaitStarted():
            return replace(progress, state="waiting", working={})
        case WaitFinished() | CheckpointClosed() | CheckpointExpired():
            return replace(progress, state="running", checkpoint=None)
        case Paused():
            return replace(progress, state="paused", working={}, checkpoint=None)
        case DebateFailed():
            return replace(progress, state="failed", working={}, checkpoint=None)
        case Concluded() as concluded:
            state = "completed" if concluded.HasField("outcome") else "cancelled"
            return replace(progress, state=state, working={}, phases=(), checkpoint=None)
        case _:
            return progress


def _apply_to_rounds(progress: DebateProgress, payload: Message | None) -> DebateProgress:  # noqa: PLR0911 (a case a kind)
    match payload:
        case RoundStarted(number=number, total=total):
            return replace(progress, round=number, rounds=total, rounds_ended_by="")
        case RoundFinished(number=number):  # 0: what comes before the first
            return replace(progress, completed_rounds=progress.completed_rounds + bool(number))
        case RoundAssessed(ends_rounds=True, finding=finding):
            return replace(progress, rounds_ended_by=finding or "no reason is given")
        case Intervened(intervention=asked) | CheckpointClosed(intervention=asked) if asked.HasField("end"):
            return replace(progress, rounds_ended_by="a person asked for it")
        case PhaseStarted(activity=activity, title=title, round=number, expected=expected):
            begun = PhaseProgress(activity, number, expected, title=title)
            return replace(progress, phases=(*_remove_phase(progress.phases, activity, number), begun))
        case PhaseFinished(activity=activity, round=number):
            return replace(progress, phases=_remove_phase(progress.phases, activity, number))
        case _:
            return progress


def _remove_phase(phases: tuple[PhaseProgress, ...], activity: str, number: int) -> tuple[PhaseProgress, ...]:
    return tuple(each for each in phases if not each.is_of(activity, number))


def _finish_step(
    progress: DebateProgress,
    key: str,
    work: Work,
    usage: Usage | None,
    failed: AbstractSet[str] = frozenset(),
) -> DebateProgress:
    phases = tuple(
        replace(each, done=each.done + 1, failed=each.failed | failed)
        if each.is_of(work.activity, work.round)
        else each
        for each in progress.phases
    )
    working = {other: each for other, each in progress.working.items() if other != key}
    if usage is None:
        return replace(progress, phases=phases, working=working)
    return replace(
        progress,
        phases=phases,
        working=working,
        calls=progress.calls + 1,
        input_tokens=progress.input_tokens + usage.input_tokens,
        output_tokens=progress.output_tokens + usage.output_tokens,
        cost_micros=_add_cost(progress.cost_micros, usage),
    )


def _add_cost(before: int | None, usage: Usage) -> int | None:
    is_priced = usage.HasField("cost_micros")
    if usage.requests == 0 and not is_priced:
        return before
    return before + usage.cost_micros if before is not None and is_priced else None


MAX_TEXT: Final = 64 * 1024
"""Characters kept of a text in flight."""
_MAX_LATEST: Final = 8000
"""Characters kept of a contribution: more than any panel shows."""


class StepProgress(Struct, frozen=True):
    """A step in flight.

    Attributes:
        is_structured: Whether its text is JSON.
        attempt: The attempt at the step and at the route that the text is of.
        length: Characters of the attempt's text so far.
        text: The beginning of it if it is JSON, else the end.
    """

    work: Work
    is_structured: bool = False
    attempt: tuple[int, int] = (0, 0)
    length: int = 0
    text: str = ""


class AgentProgress(Struct, frozen=True):
    """The progress of one agent.

    Attributes:
        debates: Whether it debates, rather than judges.
        position: Its latest position in a sentence; empty if it stated none.
        steps: Its steps in flight by key, in the order they began.
        latest_text: The beginning of its latest contribution, as people read it.
        latest_phase: The phase of that, such as `round 1 proposal`; or how it failed.
        latest_work: The step that this was.
    """

    id: str
    role: str = ""
    debates: bool = False
    position: str = ""
    steps: Mapping[str, StepProgress] = field(default_factory=dict)
    latest_text: str = ""
    latest_phase: str = ""
    latest_work: Work = field(default_factory=Work)


AgentsProgress = Mapping[str, AgentProgress]
"""Agents by id: those that debate, in their order, then others that did a step."""


def apply_event(agents: AgentsProgress, event: Event) -> AgentsProgress:  # noqa: PLR0911 (a case a kind)
    """Return the agents after an event. Kinds that change nothing are ignored."""
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
                    agent,
                    latest_text="",
                    latest_phase=f"{work_phase_text(work)} failed: {reason}",
                    latest_work=work,
                ),
            }
        case Claimed() | Resumed() | WaitStarted() | Paused() | DebateFailed() | Concluded():
            return {
                name: replace(each, steps={}) for name, each in agents.items()
            }  # what was in flight is void
        case _:
            return agents


def apply_text(agents: AgentsProgress, piece: TextPiece) -> AgentsProgress:
    """Return the agents after more text of a step in flight; text of other steps is ignored."""
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
        latest_text=(reply.rendered or reply.text)[:_MAX_LATEST],
        latest_phase=f"{work_phase_text(work)}{of_whom}",
        latest_work=work,
    )


def _append_text(step: StepProgress, piece: TextPiece) -> StepProgress:
    attempt = (piece.step_attempt, piece.route_attempt)
    if attempt < step.attempt:
        return step
    if attempt > step.attempt:
        step = replace(step, attempt=attempt, length=0, text="")
    new = piece.text[max(step.length - piece.offset, 0) :]
    length = max(step.length, piece.offset + len(piece.text))
    text = step.text + new
    return replace(step, length=length, text=text[:MAX_TEXT] if step.is_structured else text[-MAX_TEXT:])
