"""The interface that formats and phases use to run a debate.

If the log has a key, the recorded outcome is returned and nothing is called. So running a format again on a debate's log
resumes the debate. This needs two rules, which are checked here: a key is used once in a run, and a step always asks the same.
"""

import hashlib
import random
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from pydantic import BaseModel

from parley.orchestrator.engine.agent_steps import AgentCaller, create_agent_step
from parley.orchestrator.engine.budget import answer_reserve, budget_balances, estimate
from parley.orchestrator.engine.call_admission import Gate, Slot
from parley.orchestrator.engine.checkpoints import CheckpointRequest, Checkpoints, NotifyStatus
from parley.orchestrator.engine.documents import Documents
from parley.orchestrator.engine.kept_steps import KeptSteps
from parley.orchestrator.engine.limiter import Budget, Limiter
from parley.orchestrator.engine.parallel_steps import get_scopes, run_in_parallel
from parley.orchestrator.engine.prompt_digests import PromptDigests
from parley.orchestrator.engine.refusals import check_not_all_refused
from parley.orchestrator.engine.step_runner import StepRunner
from parley.orchestrator.engine.steps import (
    StepAttempt,
    StepRequest,
    digest_of_step,
    unpack_answer,
)
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.events import Payload
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.errors import ReplayError
from parley.orchestrator.model.spec import agents_of, format_settings
from parley.orchestrator.model.tasks import AnswerShape, Task
from parley.orchestrator.model.times import seconds_of, timestamp
from parley.orchestrator.peers.agents import Agents
from parley.orchestrator.peers.services import Services
from parley.runtime.agent_names import letter_of
from parley.runtime.clock import Clock, wait_or_timeout
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateLimits, Reply, Work
from parley.v1.event_pb2 import (
    CheckpointClosed,
    DebateCreated,
    ParticipantJoined,
    SteeringRead,
    StepFailed,
    StepSucceeded,
    TimerFired,
    TimerStarted,
    Warned,
)
from parley.v1.source_pb2 import Findings, NearestPassages

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R", bound=Message)
T = TypeVar("T")


async def _ignore_status(_status: str) -> None:
    pass


class Debate:
    """A debate that its owner runs, for one run of its format after the other.

    Attributes:
        spec: The specification; it and its parts are only read.
        agents: The agents of the specification.
        judge: The judge of the specification.
        settings: The settings of its format; None for a format that has none.
        is_demonstration: Whether a model answers that is too small to be relied on. It is asked for prose alone, and the outcome is
            neither remembered nor rated.
        documents: Its context documents, and what was found for it once `add_findings` was called in this run.
        services: The other services, which steps call.
        checkpoints: Where the debate waits for a person.
        slot: Its slot at the replica, which it needs for calls.
        briefing: Text for all agents in addition to the question, such as a person's answers; phases set it in each run.
    """

    def __init__(
        self,
        created: DebateCreated,
        journal: Journal,
        agents: Agents,
        services: Services,
        clock: Clock,
        notify_status: NotifyStatus = _ignore_status,
        slot: Slot | None = None,
    ) -> None:
        """Use a journal that is claimed and whose writer runs. Without `slot`, a slot is always free."""
        self.id = journal.debate
        self.spec = spec = created.spec
        self.agents = agents_of(spec)
        self.judge = spec.judge.agent
        self.settings = format_settings(spec)
        self.is_demonstration = created.demonstration
        self.services = services
        self.briefing = ""
        self.slot = slot or Slot()
        self.checkpoints = Checkpoints(journal, clock, self.slot, notify_status)
        self._journal = journal
        self._recorded = journal.recorded
        self.kept_steps = KeptSteps(journal.recorded)
        self._caller = AgentCaller(agents, clock, journal)
        self._digests = PromptDigests()
        self._clock = clock
        self._used: set[str] = set()
        self._joining: set[str] = set()
        self._active_agents = self.agents
        self._letters: dict[str, str] = {}
        self._instructions = {each.role: dict(each.sections) for each in created.roles}
        self.documents = self._given_documents = Documents(journal.recorded.documents.items())
        limiter = self._create_limiter(
            Budget(spec.limits, answer=answer_reserve(spec), share=len(self.agents) + 1)
        )
        self._steps = StepRunner(journal, clock, limiter, self.slot, dict(spec.concurrency))

    @property
    def gate(self) -> Gate:
        """The gate at which calls wait while the debate is paused."""
        return self._steps.gate

    @property
    def limiter(self) -> Limiter:
        """The limiter of the debate."""
        return self._steps.limiter

    @property
    def ending(self) -> str:
        """The limit after which only the answer may still start, such as `total_timeout`; empty if none was reached."""
        return self.limiter.ending

    @property
    def participants(self) -> tuple[Agent, ...]:
        """The agents that take part: those of the specification, then those that joined in this run (after the answer: all that joined)."""
        is_answered = self._recorded.concluded is not None
        joined = (agent for key, agent in self._recorded.joined.items() if is_answered or key in self._used)
        return (*self._active_agents, *joined)

    @property
    def all_participants(self) -> tuple[Agent, ...]:
        """The agents of the specification that take part, and all that ever joined by the log."""
        return (*self._active_agents, *self._recorded.joined.values())

    @property
    def made(self) -> dict[str, StepSucceeded]:
        """All replies of agents so far by the keys of their steps, in the order of the log."""
        return self._recorded.list_replies()

    @property
    def replies(self) -> tuple[StepSucceeded, ...]:
        """All replies of agents so far, in the order of the log."""
        return tuple(self.made.values())

    @property
    def answer_author(self) -> str:
        """The id of the agent that was asked last for the answer; empty before that."""
        return self._recorded.find_answer_author()

    def set_participants(self, agents: Collection[str]) -> None:
        """Let only these agents of the specification take part in this run. Call it before the first step."""
        self._active_agents = tuple(each for each in self.agents if each.id in agents)
        self._letters.clear()

    def instructions(self, agent: Agent) -> Mapping[str, str]:
        """Return the prompts of an agent's role by section, as they were when the debate was accepted, or when the agent joined."""
        own = self._recorded.instructions.get(agent.id)
        return self._instructions[agent.role] if own is None else own

    def letter(self, agent: str) -> str:
        """Return the letter that names an agent to the others."""
        if agent not in self._letters:  # who joins is last, so that no letter changes
            self._letters[agent] = letter_of([each.id for each in self.all_participants], agent)
        return self._letters[agent]

    def start_run(self) -> None:
        """Prepare to run the format from its start. No step may be in progress."""
        self.briefing = ""
        self.documents = self._given_documents
        self._used.clear()
        self._joining.clear()
        self._active_agents = self.agents
        self._letters.clear()
        self.limiter.start_run()

    def start_follow_up(self, limits: DebateLimits) -> None:
        """Prepare for what follows the answer, which has its own limits."""
        self._steps.limiter = self._create_limiter(Budget(limits, "the follow-up's", bounds_services=True))
        self.start_run()
        for _, outcome in self._recorded.outcomes.values():
            found, nearest = Findings(), NearestPassages()
            if not isinstance(outcome, StepSucceeded):
                continue
            if outcome.value.Unpack(found):
                self.documents, _ = self.documents.with_findings(found)
            elif outcome.value.Unpack(nearest):
                self.use_passages(nearest)

    def leaves_budget_for(self, agent: Agent, task: Task) -> bool:
        """Return whether a call after the answer fits what the debate has left of its tokens and money, with a short answer."""
        expected = estimate(task, agent)
        balances = budget_balances(self.spec.limits, self._recorded.spent, (), expected, None)
        return all(each.amount(expected.read, expected.least) <= each.remaining for each in balances)

    def expect_answer_calls(self, count: int) -> None:
        """Reserve for so many calls that make the answer, ballots among them; at the start of a run it is one.

        A format calls it before its rounds, so that these leave enough for its ballots.
        """
        self.limiter.expect_answer_calls(count)

    async def ask(self, key: str, agent: Agent, task: Task) -> Reply | StepFailed:
        """Return an agent's reply, or its failure. Either is recorded once under `key`.

        Once a limit has ended the debate, only the answer is asked for: a step that was not started fails. The limit is
        recorded, so the step also fails in every replay.

        Raises:
            ReplayError: the key was already used in this run, or its recorded step asked something else.
        """
        return (await self._ask(key, agent, task, None))[1]

    async def ask_structured(
        self, key: str, agent: Agent, task: Task, shape: AnswerShape[M]
    ) -> M | StepFailed:
        """Return an agent's structured answer, or its failure, as `ask` does."""
        step, reply = await self._ask(key, agent, task, shape)
        if isinstance(reply, StepFailed):
            return reply
        answer: M = step.read(reply.text)
        return answer

    async def call_service(
        self,
        key: str,
        work: Work,
        request: Message,
        call: Callable[[], Awaitable[R]],
    ) -> R | StepFailed:
        """Return a service's answer, or its failure. Either is recorded once under `key`.

        `request` must contain all that is asked, since its digest identifies the step.

        Raises:
            ReplayError: as `ask`.
        """
        self._mark_used(key)
        step = StepRequest(key, work, digest_of_step(request), scopes=get_scopes())

        async def answer(_: StepAttempt) -> StepSucceeded:
            value = AnyMessage()
            value.Pack(await call())
            return StepSucceeded(work=work, digest=step.digest, value=value)

        outcome = await self._steps.run(step, answer)
        return outcome if isinstance(outcome, StepFailed) else unpack_answer(key, outcome)  # type: ignore[return-value]

    async def run_until_enough(
        self,
        key: str,
        steps: Mapping[str, Callable[[], Coroutine[Any, Any, T]]],
        enough: Callable[[Mapping[str, T]], bool],
    ) -> dict[str, T]:
        """Run steps concurrently until `enough` returns True for the results so far, and return these.

        The steps that count are recorded before the others are stopped, so that a replay never starts the others. Results
        are in the order in which they arrived. If all steps end, all count, enough or not.

        Raises:
            ReplayError: the key was already used in this run.
        """
        self._mark_used(key)
        settled = self._recorded.settled.get(key)
        if settled is not None:
            await self.limiter.fail_left_out(settled)
            if not steps.keys() >= set(settled.counted):
                raise ReplayError(f"{key} does not start a step that counted when it was recorded")
            counted = {name: steps[name] for name in settled.counted}
            results = await run_in_parallel(key, counted, self.limiter)
            return {name: results[name] for name in counted}
        return await run_in_parallel(key, steps, self.limiter, enough)

    async def add_findings(self, key: str, findings: Findings) -> None:
        """Let the prompts that follow show what was found, as sources after the documents; they are listed once under `key`."""
        size = sum(len(each.text) for each in findings.findings)
        self.documents, listed = await in_thread_if_large(
            size, partial(self.documents.with_findings, findings)
        )
        self.record_event(key, listed)

    def use_passages(self, nearest: NearestPassages) -> None:
        """Let the prompts that follow keep these passages of large documents where they have to shorten them."""
        self.documents = self.documents.with_passages(nearest)

    def record_event(self, key: str, payload: Payload) -> None:
        """Record an event that follows from steps, once."""
        self._mark_used(key)
        if key not in self._recorded.notes:
            self._journal.enqueue(create_event(key, payload))

    def warn(self, key: str, message: str) -> None:
        """Record once, below a key, that something went other than planned; in one line."""
        self.record_event(f"{key}/warning", Warned(message=" ".join(message.split())))

    def is_given_up(self, phase: str) -> bool:
        """Return whether what this phase needs was waited for, and is not any more."""
        return given_up_key(phase) in self._recorded.notes

    async def add_participant(self, key: str, agent: Agent, instructions: Mapping[str, str]) -> Agent:
        """Add an agent to the debate with its prompts by section. Return it as it is recorded.

        Raises:
            ValueError: another participant has the same id.
            ReplayError: the key was already used in this run.
        """
        self._mark_used(key)
        if key not in self._recorded.joined:
            others = {each.id for each in (*self.agents, *self._recorded.joined.values())}
            if agent.id in others | self._joining:
                raise ValueError(f"agent {agent.id} already takes part")
            self._joining.add(agent.id)
            joined = ParticipantJoined(agent=agent, instructions=instructions)
            self._journal.record(create_event(key, joined))
        return self._recorded.joined[key]

    async def run_timer(self, key: str, seconds: float) -> None:
        """Wait until `seconds` after the first call with this key, across all owners. Start and end are recorded once.

        A limit that ends the debate ends the wait too.

        Raises:
            ReplayError: the key was already used in this run.
        """
        self._mark_used(key)
        recorded = self._recorded
        if key not in recorded.timers:
            until = timestamp(self._clock.now() + timedelta(seconds=seconds))
            self._journal.record(create_event(key, TimerStarted(until=until)))
        if key not in recorded.fired_timers:
            left = (recorded.timers[key] - self._clock.now()).total_seconds()
            with self.slot.free_while_waiting():
                await wait_or_timeout(self.limiter.ended, self._clock, left)
            self._journal.record(create_event(key, TimerFired()))

    async def read_steering(self, key: str) -> Steering:
        """Return what the interventions so far ask for. A replay gets the same for this key.

        A limit that ends the debate ends the rounds too.
        """
        self._mark_used(key)
        if key not in self._recorded.control_sequences:
            if self.ending:
                await self.limiter.ended.wait()
            seen = SteeringRead(through=self._recorded.last_steering_sequence())
            self._journal.record(create_event(key, seen))
        return self._recorded.steering(self._recorded.control_sequences[key])

    async def run_checkpoint(self, key: str, request: CheckpointRequest) -> CheckpointClosed:
        """Open a checkpoint, wait until a person closes it, and return how. It is recorded once.

        If it is not closed within the debate's limit for that, the debate pauses here.
        """
        self._mark_used(key)
        return await self.checkpoints.open_and_wait(key, request, seconds_of(self.spec.limits.checkpoint))

    async def confirm_recorded(self) -> None:
        """Say to the gateway which answers are recorded, until cancelled: those that come within a moment, together."""
        await self._caller.confirm_recorded()

    async def forget_answers(self) -> None:
        """Let the gateway forget the answers of the debate: the log has them."""
        await self._caller.forget_all()

    def random(self, key: str) -> random.Random:
        """Return a random generator seeded by the debate and the key: the same on every machine."""
        seed = hashlib.blake2b(f"{self._journal.debate}/{key}".encode(), digest_size=16).digest()
        return random.Random(seed)  # noqa: S311 - not for secrets

    def _create_limiter(self, budget: Budget) -> Limiter:
        return Limiter(budget, self._journal, self._clock, self._caller.stop)

    async def _ask(
        self, key: str, agent: Agent, task: Task, shape: AnswerShape[M] | None
    ) -> tuple[StepRequest, Reply | StepFailed]:
        self._mark_used(key)
        seconds = seconds_of(self.spec.limits.call) if task.seconds is None else task.seconds
        step = await create_agent_step(
            key,
            agent,
            task,
            shape,
            seconds,
            digests=self._digests,
            documents=self.documents.digests,
            scopes=get_scopes(),
        )
        _, before = self._recorded.outcomes.get(key, (0, None))
        outcome = await self._steps.run(step, partial(self._caller.call, step, agent, task, seconds))
        self._caller.mark_recorded(key)
        if task.is_answer:
            self.limiter.count_answer_call()
        if isinstance(outcome, StepFailed):
            # One that is replayed has not stopped the debate, or is to be tried again.
            if outcome is not before:
                check_not_all_refused(self._recorded, agent, outcome, self.participants or self.agents)
            return step, outcome
        if not outcome.HasField("reply"):
            raise ReplayError(
                f"step {key} is now a step of an agent, but was recorded as a step of a service"
            )
        return step, outcome.reply

    def _mark_used(self, key: str) -> None:
        if key in self._used:
            raise ReplayError(f"key {key} was used twice in one run")
        self._used.add(key)


def given_up_key(phase: str) -> str:
    """Return the key of the event that a phase is not waited for any more."""
    return f"given-up/{phase.replace(' ', '-')}"
