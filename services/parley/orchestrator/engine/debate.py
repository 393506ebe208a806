"""The handle that formats and phases are written against.

If the log has a key, the recorded outcome comes back and nothing is called; so running a format again on a debate's
log is resuming it. What makes that true is enforced here: a key is used once a run, and a step asks the same thing
whenever it is asked.
"""

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextvars import ContextVar, copy_context
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from opentelemetry.trace import Status, StatusCode
from pydantic import BaseModel, ValidationError

from parley.orchestrator.engine.budget import answer_reserve, estimate
from parley.orchestrator.engine.call_admission import Gate, Slot
from parley.orchestrator.engine.checkpoints import CheckpointRequest, Checkpoints, NotifyStatus
from parley.orchestrator.engine.documents import Documents
from parley.orchestrator.engine.limiter import Budget, Limiter
from parley.orchestrator.engine.step_runner import StepRunner
from parley.orchestrator.engine.steps import (
    StepAttempt,
    StepRequest,
    digest_of_ask,
    digest_of_step,
    render_answer,
    shorten_answer,
    unpack_answer,
    wait_or_timeout,
)
from parley.orchestrator.log.envelope import Draft
from parley.orchestrator.log.events import Payload
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.contributions import letter_of
from parley.orchestrator.model.conversion import agent_to_proto
from parley.orchestrator.model.errors import ReplayError, StepError
from parley.orchestrator.model.spec import AgentSpec, DebateSpec, Limits
from parley.orchestrator.model.tasks import AnswerShape, Task
from parley.orchestrator.model.times import timestamp
from parley.orchestrator.peers.agents import Agents, Call, generate_request
from parley.orchestrator.peers.services import Services
from parley.runtime.clock import Clock
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.telemetry import tracer
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import Reply, Work
from parley.v1.event_pb2 import (
    CheckpointClosed,
    ParticipantJoined,
    SteeringRead,
    StepFailed,
    StepSucceeded,
    TimerFired,
    TimerStarted,
)

__all__ = ["Debate"]

_tracer = tracer(__name__)
_scopes: ContextVar[frozenset[str]] = ContextVar("scopes", default=frozenset())
"""The groups of steps, settled together, that the present task works for."""

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R", bound=Message)
T = TypeVar("T")


async def _ignore_status(_status: str) -> None:
    pass


class Debate:
    """A debate in its owner's hands, for one run of its format after the other.

    Attributes:
        spec: What is debated.
        documents: Its context documents, as prompts hold them.
        services: The other services, to be asked in steps.
        checkpoints: Where a person is waited for.
        slot: What it needs of its replica to make calls.
        briefing: What everybody is told beside the question, such as a person's answers; phases set it in each run.
    """

    def __init__(
        self,
        spec: DebateSpec,
        journal: Journal,
        agents: Agents,
        services: Services,
        clock: Clock,
        tell_status: NotifyStatus = _ignore_status,
        slot: Slot | None = None,
    ) -> None:
        """Stand on a journal that is claimed and being written; without a `slot`, one is always free."""
        self.id = journal.debate
        self.spec = spec
        self.services = services
        self.briefing = ""
        self.slot = slot or Slot()
        self.checkpoints = Checkpoints(journal, clock, self.slot, tell_status)
        self._journal = journal
        self._recorded = journal.recorded
        self._agents = agents
        self._clock = clock
        self._used: set[str] = set()
        self._joining: set[str] = set()
        self._active_agents: tuple[AgentSpec, ...] = spec.agents
        self.documents = Documents(spec.context)
        limiter = self._create_limiter(
            Budget(spec.limits, answer=answer_reserve(spec), share=len(spec.agents) + 1)
        )
        self._steps = StepRunner(journal, clock, limiter, self.slot, spec.concurrency)

    @property
    def gate(self) -> Gate:
        """Where calls wait while the debate is paused."""
        return self._steps.gate

    @property
    def limiter(self) -> Limiter:
        """What keeps the debate to its limits."""
        return self._steps.limiter

    @property
    def ending(self) -> str:
        """The limit that lets nothing new begin but the answer, such as `total_timeout`; empty for none."""
        return self.limiter.ending

    @property
    def participants(self) -> tuple[AgentSpec, ...]:
        """Those who debate: the specification's agents that have a seat, then those who have joined in this run, or by the answer."""
        is_answered = self._recorded.concluded is not None
        joined = (agent for key, agent in self._recorded.joined.items() if is_answered or key in self._used)
        return (*self._active_agents, *joined)

    @property
    def all_participants(self) -> tuple[AgentSpec, ...]:
        """Those who have a seat, and all who ever joined, as far as the log tells."""
        return (*self._active_agents, *self._recorded.joined.values())

    @property
    def replies(self) -> tuple[StepSucceeded, ...]:
        """What agents have answered so far in the whole debate, in the order of its log."""
        recorded = (outcome for _, outcome in self._recorded.outcomes.values())
        return tuple(each for each in recorded if isinstance(each, StepSucceeded) and each.HasField("reply"))

    def set_participants(self, agents: Collection[str]) -> None:
        """Let only these of the specification's agents take part in this run; to be said before anybody is asked."""
        self._active_agents = tuple(each for each in self.spec.agents if each.id in agents)

    def letter(self, agent: str) -> str:
        """Return the letter an agent goes by among its peers."""
        return letter_of([each.id for each in self.all_participants], agent)

    def start_run(self) -> None:
        """Get ready for the format to be run from its start; no step may be on its way."""
        self.briefing = ""
        self._used.clear()
        self._joining.clear()
        self._active_agents = self.spec.agents
        self.limiter.start_run()

    def start_follow_up(self, limits: Limits) -> None:
        """Get ready for what follows the answer, which has limits of its own."""
        self._steps.limiter = self._create_limiter(Budget(limits, "the follow-up's", bounds_services=True))
        self.start_run()

    async def ask(self, key: str, agent: AgentSpec, task: Task) -> Reply | StepFailed:
        """Return an agent's reply, or why there is none; either is recorded under `key` once.

        Once a limit has ended the debate, nothing but the answer is asked: a step that was not begun fails, and since
        the limit is recorded, it does so whenever it is asked again.

        Raises:
            ReplayError: the key was used in this run, or something else was asked under it before.
        """
        return await self._ask(key, agent, task, None)

    async def ask_structured(
        self, key: str, agent: AgentSpec, task: Task, shape: AnswerShape[M]
    ) -> M | StepFailed:
        """Return an agent's structured answer, or why there is none, as `ask` does."""
        reply = await self._ask(key, agent, task, shape)
        if isinstance(reply, StepFailed):
            return reply
        try:
            return shape.parse(reply.text)
        except ValidationError as error:
            # It was read when it was recorded; so the shape, or the log, has changed since.
            raise ReplayError(f"the answer of step {key} is not of its shape any more: {error}") from error

    async def call_service(
        self, key: str, work: Work, request: Message, call: Callable[[], Awaitable[R]]
    ) -> R | StepFailed:
        """Return what a service answers, or why there is nothing; either is recorded under `key` once.

        `request` stands for all that is asked.

        Raises:
            ReplayError: as `ask`.
        """
        self._mark_used(key)
        asked = StepRequest(key, work, digest_of_step(request), scopes=_scopes.get())

        async def answer(_: StepAttempt) -> StepSucceeded:
            value = AnyMessage()
            value.Pack(await call())
            return StepSucceeded(work=work, digest=asked.digest, value=value)

        outcome = await self._steps.run(asked, answer)
        return outcome if isinstance(outcome, StepFailed) else unpack_answer(key, outcome)  # type: ignore[return-value]

    async def call_ahead(self, key: str, call: Callable[[], Awaitable[None]]) -> None:
        """Make a call from which nothing follows but that the step `key` is faster; none where that is recorded."""
        if key not in self._recorded.outcomes:
            await self._clock.sleep(0.03)  # what is asked now goes out first
            await call()

    async def run_until_enough(
        self,
        key: str,
        steps: Mapping[str, Callable[[], Coroutine[Any, Any, T]]],
        enough: Callable[[Mapping[str, T]], bool],
    ) -> dict[str, T]:
        """Begin several things at once and return the results of those that were in when these were enough.

        Which ones counted is recorded before the rest is stopped, so that a replay never asks the rest. The results are
        in the order in which they came in. Where all are in, they all count, enough or not.

        Raises:
            ReplayError: the key was used in this run.
        """
        self._mark_used(key)
        settled = self._recorded.settled.get(key)
        if settled is not None:
            await self.limiter.fail_left_out(settled)
            if not steps.keys() >= set(settled.counted):
                raise ReplayError(f"{key} is settled without a step that counted when it was recorded")
            results, _ = await self._run_steps(key, {name: steps[name] for name in settled.counted}, None)
            return {name: results[name] for name in settled.counted}
        results, _ = await self._run_steps(key, steps, enough)
        return results

    def record_event(self, key: str, payload: Payload) -> None:
        """Record an event that follows from steps, once."""
        self._mark_used(key)
        if key not in self._recorded.notes:
            self._journal.enqueue(Draft(key, payload))

    async def add_participant(self, key: str, agent: AgentSpec) -> AgentSpec:
        """Let an agent take part from now on, and return it as it is recorded.

        Raises:
            ValueError: another participant has its id.
            ReplayError: the key was used in this run.
        """
        self._mark_used(key)
        if key not in self._recorded.joined:
            others = {each.id for each in (*self.spec.agents, *self._recorded.joined.values())}
            if agent.id in others | self._joining:
                raise ValueError(f"agent {agent.id} takes part already")
            self._joining.add(agent.id)
            joined = ParticipantJoined(agent=agent_to_proto(agent), instructions=agent.instructions)
            await self._journal.append(Draft(key, joined))
        return self._recorded.joined[key]

    async def run_timer(self, key: str, seconds: float) -> None:
        """Wait for so long from when this was first asked, across all owners; recorded once.

        A limit that ends the debate ends the wait too.

        Raises:
            ReplayError: the key was used in this run.
        """
        self._mark_used(key)
        recorded = self._recorded
        if key not in recorded.timers:
            until = timestamp(self._clock.now() + timedelta(seconds=seconds))
            await self._journal.append(Draft(key, TimerStarted(until=until)))
        if key not in recorded.fired_timers:
            left = (recorded.timers[key] - self._clock.now()).total_seconds()
            with self.slot.free_while_waiting():
                await wait_or_timeout(self.limiter.ended, self._clock, left)
            await self._journal.append(Draft(key, TimerFired()))

    async def read_steering(self, key: str) -> Steering:
        """Return what the interventions so far come to; the same whenever this key is asked again.

        A limit that ends the debate ends the rounds too.
        """
        self._mark_used(key)
        if key not in self._recorded.control_sequences:
            if self.ending:
                await self.limiter.ended.wait()
            seen = SteeringRead(through=self._recorded.last_steering_sequence())
            await self._journal.append(Draft(key, seen))
        return self._recorded.steering(self._recorded.control_sequences[key])

    async def run_checkpoint(self, key: str, request: CheckpointRequest) -> CheckpointClosed:
        """Put something to a person, wait until they close the checkpoint, and return how; it is recorded once.

        Where nobody comes within the debate's limit for that, the debate pauses here.
        """
        self._mark_used(key)
        return await self.checkpoints.open_and_wait(key, request, self.spec.limits.checkpoint_seconds)

    def random(self, key: str) -> random.Random:
        """Return dice that fall the same for this debate and key, on every machine."""
        seed = hashlib.blake2b(f"{self._journal.debate}/{key}".encode(), digest_size=16).digest()
        return random.Random(seed)  # noqa: S311 - dice, not secrets

    def _create_limiter(self, budget: Budget) -> Limiter:
        return Limiter(budget, self._journal, self._clock, self._stop_call)

    async def _ask(
        self, key: str, agent: AgentSpec, task: Task, shape: AnswerShape[M] | None
    ) -> Reply | StepFailed:
        self._mark_used(key)
        seconds = self.spec.limits.call_seconds if task.seconds is None else task.seconds
        texts = [self.documents.text_of(each) for each in task.prompt]
        stands_for = partial(digest_of_ask, agent, task, shape, seconds, self.documents.digests)
        asked = StepRequest(
            key,
            task.work,
            await in_thread_if_large(texts, stands_for),
            await in_thread_if_large(texts, partial(estimate, task, agent, texts)),
            is_answer=task.is_answer,
            is_structured=shape is not None,
            concurrency=task.concurrency,
            scopes=_scopes.get(),
            retry_once=task.retry_once,
        )

        async def call(attempt: StepAttempt) -> StepSucceeded:
            with _tracer.start_as_current_span(f"invoke_agent {agent.id}") as span:
                span.set_attributes(self._span_attributes(agent, key))
                try:
                    made = partial(generate_request, agent, task, shape, seconds, attempt.bound)
                    request = await in_thread_if_large(texts, made)
                    reply = await self._agents.generate(self._call_id(key, attempt.number), request)
                    if shape is not None:
                        reply.rendered = render_answer(shape, reply)
                    elif task.max_characters:
                        shorten_answer(reply, task.max_characters)
                    if task.annotate is not None:
                        await in_thread_if_large([reply.text], partial(task.annotate, reply))
                except StepError as error:
                    span.set_status(Status(StatusCode.ERROR, f"{error.reason}: {error}"))
                    raise
                return StepSucceeded(work=task.work, digest=asked.digest, reply=reply)

        outcome = await self._steps.run(asked, call)
        if isinstance(outcome, StepFailed):
            return outcome
        if not outcome.HasField("reply"):
            raise ReplayError(f"step {key} was recorded with a service's value and is asked of an agent now")
        return outcome.reply

    async def _run_steps(
        self,
        key: str,
        steps: Mapping[str, Callable[[], Coroutine[Any, Any, T]]],
        enough: Callable[[Mapping[str, T]], bool] | None,
    ) -> tuple[dict[str, T], list[str]]:
        """Run steps until they are enough, or all if nothing says so, and record it; return results and who is left."""
        results: dict[str, T] = {}
        async with asyncio.TaskGroup() as tasks:
            running = {
                name: tasks.create_task(begin(), context=_context_with_scope(f"{key}/{name}"))
                for name, begin in steps.items()
            }
            while running and not (enough is not None and enough(results)):
                await asyncio.wait(running.values(), return_when=asyncio.FIRST_COMPLETED)
                for name in [name for name, task in running.items() if task.done()]:
                    results[name] = running.pop(name).result()
            if enough is not None:
                await self.limiter.stop_left_out(key, tuple(results), tuple(running))
            for task in running.values():
                task.cancel()
        return results, list(running)

    def _call_id(self, key: str, attempt: int) -> Call:
        return Call(self._journal.tenant, self._journal.debate, key, attempt)

    async def _stop_call(self, key: str, attempt: int) -> Usage:
        stopped = await self._agents.cancel(self._call_id(key, attempt))
        return stopped.usage or Usage()

    def _mark_used(self, key: str) -> None:
        if key in self._used:
            raise ReplayError(f"key {key} was used twice in one run")
        self._used.add(key)

    def _span_attributes(self, agent: AgentSpec, key: str) -> dict[str, str]:
        return {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.id": agent.id,
            "gen_ai.agent.name": agent.name,
            "gen_ai.conversation.id": self._journal.debate,
            "parley.step": key,
        }


def _context_with_scope(scope: str) -> Any:
    """Return the present context with one group of steps more."""
    context = copy_context()
    context.run(_scopes.set, _scopes.get() | {scope})
    return context
