"""One arena debate while it runs: who takes part, what was said so far, and what the prompts of each round say."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.arena.positions import PositionTracker
from parley.orchestrator.formats.arena.record import Transcript
from parley.orchestrator.formats.arena.settings import agents_with_duty, asks_readiness
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.contributions import Contribution, texts_of
from parley.orchestrator.model.judge_choice import Nominee
from parley.orchestrator.model.open_issues import issues_of
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.phases.agreement import group_drafts
from parley.orchestrator.phases.grouping import Asked
from parley.orchestrator.phases.kept_round import Made
from parley.orchestrator.phases.observe import observe
from parley.orchestrator.phases.past import past_prompt
from parley.orchestrator.phases.patterns import patterns_prompt
from parley.orchestrator.phases.progress import PhaseMarks
from parley.orchestrator.phases.prompting import direction, quotation
from parley.orchestrator.phases.requirements import Requirements
from parley.orchestrator.phases.situation import Situation
from parley.runtime.contract_settings import with_defaults
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import DUTY_VOTER, ArenaSettings, Duty
from parley.v1.convergence_pb2 import AssessResponse
from parley.v1.debate_pb2 import DraftGroups
from parley.v1.event_pb2 import JudgeChosen, PhaseEntered, RoundFinished, RoundStarted, Warned
from parley.v1.gateway_pb2 import PromptPart
from parley.v1.memory_pb2 import CritiquePattern, PastDebate
from parley.v1.voting_pb2 import VOTE_BALLOTS_FIRST_DRAFTS

CONTEXT_ROUND: Final = 0
PROPOSAL_ROUND: Final = 1
CRITIQUE_ROUND: Final = 2


class Discussion:
    """What all rounds of one debate share.

    Attributes:
        record: What was said so far.
        judges: Those who may judge, in the order of preference.
        requirements: What an answer must meet, once they are drawn up.
        past: Past debates like the question, best first.
        patterns: Issues that debates like this one raised with success, best first.
        challenges: What the trickster has said to the agents, by the number of the round after which it did.
        total: The number of the last round, as far as is known now.
        tasks: Runs what no round waits for.
        positions: Who holds which position, as far as it was looked at.
        assessed: What was said of a round's agreement, by the round's number.
        not_asked: Agents that take no further part, since they need not be asked.
        known_drafts: How first drafts group that were asked for one after the other; None: it is not known.
    """

    def __init__(self, debate: Debate, tasks: asyncio.TaskGroup) -> None:
        """Begin one; what no round waits for runs in `tasks`."""
        assert isinstance(debate.settings, ArenaSettings)
        self.debate = debate
        self.settings = debate.settings
        self.transcript = Transcript(self._observe if self.settings.observer else None)
        self.challenges: dict[int, Sequence[PromptPart]] = {}
        self.steering = Steering()
        self.requirements = Requirements()
        self.tasks = tasks
        self.judges: Sequence[Nominee] = (Nominee(debate.judge, "designated"),)
        self.past: Sequence[PastDebate] = ()
        self.patterns: Sequence[CritiquePattern] = ()
        self.positions = PositionTracker()
        self.assessments: dict[int, AssessResponse | None] = {}
        self.skipped_agents: frozenset[str] = frozenset()
        self.known_drafts: DraftGroups | None = None
        self._grouping: asyncio.Task[DraftGroups | None] | None = None
        self._recorded_keys: set[str] = set()
        self.total_rounds = self.judge_round

    @property
    def order(self) -> list[str]:
        """The ids of those who take part, in their order."""
        return [each.id for each in self.debate.participants]

    @property
    def by_id(self) -> dict[str, Agent]:
        """Those who take part, by their ids."""
        return {each.id: each for each in self.debate.participants}

    @property
    def active_agents(self) -> list[Agent]:
        """Those who take part and are not left out."""
        return [each for each in self.debate.participants if each.id not in self.excluded_agents]

    @property
    def last_revision(self) -> int:
        """The number of the last round of revision."""
        return CRITIQUE_ROUND + self.settings.revision_rounds

    @property
    def judge_round(self) -> int:
        """The number of the judge's round; the rounds before it are the last refinement and the vote."""
        return self.last_revision + 3

    def agents(self, duty: Duty.ValueType) -> tuple[Agent, ...]:
        """Return those who have a duty and are not left out."""
        return agents_with_duty(self.settings, self.debate.participants, duty, self.excluded_agents)

    @property
    def excluded_agents(self) -> frozenset[str]:
        """Who is asked for nothing: those who are muted, and those who need not be asked."""
        return self.skipped_agents.union(self.steering.muted)

    def start_grouping_drafts(self, asked: Asked) -> None:
        """Begin to group the first drafts; who is `asked` is asked if it is unknown how, and anything hangs on it."""
        by_drafts = with_defaults(self.settings.voting).ballots == VOTE_BALLOTS_FIRST_DRAFTS
        is_needed = by_drafts or self.settings.stopping.unanimous_drafts
        grouping = group_drafts(self.debate, self.works(), asked if is_needed else None, self.known_drafts)
        self._grouping = self.tasks.create_task(grouping)

    async def get_draft_groups(self) -> DraftGroups | None:
        """Return how the first drafts group; None if it is not known."""
        return None if self._grouping is None else await self._grouping

    def expect_vote(self) -> None:
        """Reserve for the ballots of a vote, and for the answer that follows."""
        self.debate.expect_answer_calls(len(self.agents(DUTY_VOTER)) + 1)

    def works(self) -> list[Contribution]:
        """Return the present texts of those who are not muted."""
        return self.transcript.works(self.order, self.steering.muted)

    async def collect_issues(self, agent: str = "") -> str:
        """Return what was criticized last and what became of it; of one agent's work alone if one is named."""
        exchanges = self.transcript.exchanges(agent)
        texts = texts_of(made for exchange in exchanges for made in exchange)
        return await in_thread_if_large(texts, partial(issues_of, self.debate.letter, exchanges))

    def create_situation(self, number: int, missing: str = "") -> Situation:
        """Return what the prompts of a round say; `missing` is what the judge wants settled in one that it added."""
        has_history = number > CRITIQUE_ROUND or number - 1 in self.challenges
        return Situation(
            number,
            self.total_rounds,
            history=tuple(self._standpoints(number, missing)) if has_history else (),
            requirements=self.requirements.to_prompt_text(),
            past=past_prompt(self.past),
            patterns=patterns_prompt(self.patterns),
            guidance=self.steering.guidance,
            asks_readiness=number > CRITIQUE_ROUND and not missing and asks_readiness(self.settings.stopping),
            cites=True,
        )

    def _observe(self, made: Contribution) -> None:
        self.tasks.create_task(observe(self.debate, made))

    def _standpoints(self, number: int, missing: str) -> Iterator[PromptPart]:
        """Yield where all agents stand, and what the judge or the trickster wants settled in this round, if anything."""
        lines = [
            f"- agent {self.debate.letter(each.agent)}: {each.position}"
            for each in self.works()
            if each.position
        ]
        if lines:
            yield quotation("Where the agents stand at present", "\n".join(lines))
        if missing:
            yield direction(
                "The judge found the discussion not sufficient. What it wants settled in this round", missing
            )
        yield from self.challenges.get(number - 1, ())

    def enter_state(self, state: str) -> None:
        """Enter a state of the debate; one that was entered before is left as it is."""
        if state not in self._recorded_keys:
            self._recorded_keys.add(state)
            self.debate.record_event(f"state/{state.lower()}", PhaseEntered(name=state))

    def enter_repeated_state(self, state: str, number: int) -> None:
        """Enter a state that every vote enters."""
        self.debate.record_event(f"round/{number}/state/{state.lower()}", PhaseEntered(name=state))

    @asynccontextmanager
    async def run_round(self, number: int) -> AsyncIterator[None]:
        """Run a round in the block: an agent that is late for its limit is left out. Round 0 has no limit of its own."""
        debate = self.debate
        debate.record_event(f"round/{number}/started", RoundStarted(number=number, total=self.total_rounds))
        limit = asyncio.create_task(debate.limiter.enforce_round_limit(number)) if number else None
        try:
            yield
        finally:
            if limit is not None:
                limit.cancel()
                await asyncio.wait([limit])
        debate.record_event(f"round/{number}/finished", RoundFinished(number=number))

    async def update_steering(self, number: int) -> None:
        """Look at what a person, or a limit, wants of the rounds."""
        self.steering = await self.debate.read_steering(f"round/{number}/control")

    async def run_phase(
        self, activity: Activity, number: int, asked: Sequence[Awaitable[Made]]
    ) -> list[Made]:
        """Return what came of steps of one phase, which run at the same time."""
        marks = PhaseMarks(self.debate, number, activity, len(asked))

        async def run_with_marks(step: Awaitable[Made]) -> Made:
            marks.mark_start()
            made = await step
            marks.mark_end()
            return made

        return await self.run_in_parallel([run_with_marks(each) for each in asked])

    async def run_in_parallel(self, asked: Sequence[Coroutine[Any, Any, Made]]) -> list[Made]:
        """Return what came of steps that run at the same time."""
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(each) for each in asked]
        return [each.result() for each in running]

    def record_once(self, key: str, payload: Warned | JudgeChosen) -> None:
        """Record an event, the first time only."""
        if key not in self._recorded_keys:
            self._recorded_keys.add(key)
            self.debate.record_event(key, payload)


def contributions(made: Sequence[Made]) -> list[Contribution]:
    """Return the texts among what came of steps."""
    return [each for each in made if isinstance(each, Contribution)]
