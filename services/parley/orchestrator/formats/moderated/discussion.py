"""One moderated debate while it runs: who debates, what was said in its rounds, and what came of them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct, field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.moderated.analysis import AnalysisResult
from parley.orchestrator.formats.moderated.perspectives import Viewpoint
from parley.orchestrator.formats.moderated.points import Speech
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.contributions import Contribution
from parley.v1.agent_pb2 import Agent
from parley.v1.convergence_pb2 import AssessResponse
from parley.v1.event_pb2 import PhaseEntered, RoundFinished, RoundStarted, StepFailed, Warned
from parley.v1.memory_pb2 import PastDebate
from parley.v1.moderated_pb2 import ModeratedSettings


class Round(Struct):
    """What came of a round.

    Attributes:
        prompt: What the moderator put to the debaters.
        debaters: Those who were asked.
        arguments: By agent.
        rebuttals: By agent, in the order in which they were made.
        replies: Answers to the moderator.
        failed: Steps that failed.
        without_budget: Those for whose rebuttal their budget had nothing left.
        summary: The moderator's.
        assessment: What convergence says of it; None if it says nothing.
    """

    number: int
    prompt: str
    debaters: tuple[Agent, ...]
    arguments: dict[str, Speech] = field(default_factory=dict)
    rebuttals: dict[str, Speech] = field(default_factory=dict)
    replies: list[Contribution] = field(default_factory=list)
    failed: list[StepFailed] = field(default_factory=list)
    without_budget: set[str] = field(default_factory=set)
    summary: str = ""
    assessment: AssessResponse | None = None

    @property
    def speeches(self) -> list[Speech]:
        """All arguments, then all rebuttals."""
        return [*self.arguments.values(), *self.rebuttals.values()]

    @property
    def contributions(self) -> list[Contribution]:
        """All that debaters said."""
        return [*(each.contribution for each in self.speeches), *self.replies]

    def speeches_of(self, agent: str) -> list[Speech]:
        """Return what one debater said."""
        return [each for each in self.speeches if each.contribution.agent == agent]

    def text_of(self, agent: str) -> str:
        """Return that as one text."""
        return "\n\n".join(each.contribution.text for each in self.speeches_of(agent))

    def positions(self) -> list[Contribution]:
        """Return where each debater stands at its end: its argument, with the position that it stated last."""
        stands = []
        for agent, speech in self.arguments.items():
            last = self.rebuttals.get(agent)
            position = (last.contribution.position if last else "") or speech.contribution.position
            stands.append(
                Contribution(
                    agent, speech.contribution.activity, self.number, speech.contribution.text, position
                )
            )
        return stands


class Discussion:
    """What all rounds of one debate share.

    Attributes:
        viewpoints: The perspectives, by the ids of their debaters, in the order in which these joined.
        muted_by_person: From which round on a person does not want to hear a debater, by id.
        muted_by_moderator: The same of the moderator.
        strayed: Rounds in which the moderator found a debater off topic, by id.
    """

    def __init__(self, debate: Debate) -> None:
        """Begin one."""
        assert isinstance(debate.settings, ModeratedSettings)
        self.debate = debate
        self.settings = debate.settings
        self.analysis: AnalysisResult | None = None
        self.viewpoints: dict[str, Viewpoint] = {}
        self.rounds: list[Round] = []
        self.past: Sequence[PastDebate] = ()
        self.steering = Steering()
        self.muted_by_person: dict[str, int] = {}
        self.muted_by_moderator: dict[str, int] = {}
        self.off_topic_counts: dict[str, int] = {}

    @property
    def muted_from(self) -> Mapping[str, int]:
        """From which round on a debater says no more, by id."""
        return {
            each: min(by[each] for by in (self.muted_by_person, self.muted_by_moderator) if each in by)
            for each in (*self.muted_by_person, *self.muted_by_moderator)
        }

    @property
    def active_debaters(self) -> tuple[Agent, ...]:
        """The debaters that are not muted."""
        return tuple(each for each in self.debate.participants if each.id not in self.muted_from)

    @property
    def rounds_with_arguments(self) -> list[Round]:
        """The rounds in which an agent said something: in the last one, a limit may have left no time."""
        return [each for each in self.rounds if each.arguments]

    @property
    def topic(self) -> str:
        """What is decided on, in a few words."""
        found = self.analysis.analysis.topic if self.analysis else ""
        return found or " ".join(self.debate.spec.question.split())[:80]

    @property
    def guidance(self) -> Sequence[str]:
        """What a person said meanwhile."""
        return self.steering.guidance

    def name_of(self, agent: str) -> str:
        """Return a debater as the moderator calls it, such as `agent B (Security Advocate)`."""
        return f"agent {self.debate.letter(agent)} ({self.viewpoints[agent].name})"

    def enter_state(self, state: str, key: str) -> None:
        """Enter a state of the debate."""
        self.debate.record_event(f"{key}/state/{state.replace('_', '-')}", PhaseEntered(name=state))

    def warn(self, key: str, message: str) -> None:
        """Say in the debate's log that something went other than planned."""
        self.debate.record_event(key, Warned(message=" ".join(message.split())))

    async def update_steering(self, key: str) -> None:
        """Look at what a person, or a limit, wants of the rounds."""
        self.steering = await self.debate.read_steering(key)
        following = len(self.rounds) + 1
        for each in self.debate.participants:
            if each.id in self.steering.muted:
                self.muted_by_person.setdefault(each.id, following)
            else:
                self.muted_by_person.pop(each.id, None)

    def absent_rounds(self, agent: str) -> list[int]:
        """Return the rounds in which a debater was asked and said nothing."""
        return [
            each.number
            for each in self.rounds_with_arguments
            if agent in {asked.id for asked in each.debaters} and agent not in each.arguments
        ]

    def contributions_before(self, before: int) -> list[Contribution]:
        """Return what debaters said in the rounds before one."""
        return [made for each in self.rounds for made in each.contributions if each.number < before]

    @asynccontextmanager
    async def run_round(self, put: str) -> AsyncIterator[Round]:
        """Run the next round in the block: an agent that is late for its limit is left out."""
        debate, number = self.debate, len(self.rounds) + 1
        current = Round(number, put, self.active_debaters)
        self.rounds.append(current)
        debate.record_event(
            f"round/{number}/started", RoundStarted(number=number, total=self.settings.max_rounds)
        )
        self.enter_state("in_round", f"round/{number}")
        limit = asyncio.create_task(debate.limiter.enforce_round_limit(number))
        try:
            yield current
        finally:
            limit.cancel()
            await asyncio.wait([limit])
        debate.record_event(f"round/{number}/finished", RoundFinished(number=number))
