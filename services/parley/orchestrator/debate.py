"""The handle that formats and phases are written against: ask, step, note, control, checkpoint, random.

If the log has a key, the recorded outcome comes back and nothing is called; so running a format again on a debate's
log is resuming it. What makes that true is enforced here: a key is used once a run, and a step asks the same thing
whenever it is asked.
"""

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from datetime import timedelta

from opentelemetry.trace import Status, StatusCode

from parley.orchestrator.agents import Agents, Call
from parley.orchestrator.canonical import digest, digested
from parley.orchestrator.envelope import Draft
from parley.orchestrator.errors import CheckpointExpiredError, OutOfReachError, StepError
from parley.orchestrator.events import (
    CheckpointClosed,
    CheckpointOpened,
    ControlSeen,
    Json,
    Payload,
    Reply,
    StepFailed,
    StepStarted,
    StepSucceeded,
    Work,
)
from parley.orchestrator.flights import Asked, Flight, either
from parley.orchestrator.gate import Gate
from parley.orchestrator.journal import Journal
from parley.orchestrator.limiting import Limiter
from parley.orchestrator.limits import estimate
from parley.orchestrator.prompts import with_documents_quoted
from parley.orchestrator.recorded import Outcome, Wishes
from parley.orchestrator.rows import RUNNING, WAITING
from parley.orchestrator.services import Services
from parley.orchestrator.spec import AgentSpec, DebateSpec
from parley.orchestrator.tasks import Task
from parley.runtime.clock import Clock
from parley.runtime.telemetry import tracer

__all__ = ["Debate", "ReplayError"]

_FIRST_RETRY_SECONDS = 0.2
_LONGEST_RETRY_SECONDS = 5.0

_tracer = tracer(__name__)

TellStatus = Callable[[str], Awaitable[None]]


async def _tell_nobody(_status: str) -> None:
    pass


class ReplayError(Exception):
    """A format did not do again what it did before; the debate must not go on with this version of it."""


class Debate:
    """A debate in its owner's hands, for one run of its format after the other.

    Attributes:
        spec: What is debated.
        services: The other services, to be asked in steps.
        gate: Where calls wait while the debate is paused.
        limiter: What keeps it to its limits.
    """

    def __init__(
        self,
        spec: DebateSpec,
        journal: Journal,
        agents: Agents,
        services: Services,
        clock: Clock,
        tell_status: TellStatus = _tell_nobody,
    ) -> None:
        """Stand on a journal that is claimed and being written."""
        self.id = journal.debate
        self.spec = spec
        self.services = services
        self.gate = Gate()
        self.limiter = Limiter(spec, journal, clock, self._stop_call)
        self._journal = journal
        self._recorded = journal.recorded
        self._agents = agents
        self._clock = clock
        self._tell_status = tell_status
        self._used: set[str] = set()
        self._answers: dict[str, asyncio.Event] = {}
        self._decided: set[str] = set()
        most = spec.concurrency
        limits = {"proposal": most.proposals, "critique": most.critiques, "refinement": most.revisions}
        self._rooms = {name: asyncio.Semaphore(count) for name, count in limits.items() if count}

    @property
    def ending(self) -> str:
        """The limit that lets nothing new begin but the answer, such as `total_timeout`; empty for none."""
        return self.limiter.ending

    def begin_run(self) -> None:
        """Get ready for the format to be run from its start; no step may be on its way."""
        self._used.clear()
        self.limiter.begin_run()

    async def ask(self, key: str, agent: AgentSpec, task: Task) -> Reply | StepFailed:
        """Return an agent's reply, or why there is none; either is recorded under `key` once.

        Once a limit has ended the debate, nothing but the answer is asked: a step that was not begun fails, and since
        the limit is recorded, it does so whenever it is asked again.

        Raises:
            ReplayError: the key was used in this run, or something else was asked under it before.
        """
        told = replace(task, prompt=with_documents_quoted(task.prompt))
        asked = Asked(key, task.work, digest(digested({"agent": agent, "task": told})), estimate(task))

        async def call(attempt: int) -> StepSucceeded:
            with _tracer.start_as_current_span(f"invoke_agent {agent.id}") as span:
                span.set_attributes(self._span_attributes(agent, key))
                try:
                    named = self._call(key, attempt)
                    reply = await self._agents.generate(named, agent, task, self.spec.call_seconds)
                except StepError as error:
                    span.set_status(Status(StatusCode.ERROR, f"{error.reason}: {error}"))
                    raise
                return StepSucceeded(task.work, asked.digest, reply=reply)

        outcome = await self._once(asked, call)
        if isinstance(outcome, StepFailed):
            return outcome
        if outcome.reply is None:
            raise ReplayError(f"step {key} was recorded with a service's value and is asked of an agent now")
        return outcome.reply

    async def step(
        self, key: str, work: Work, request: Json, call: Callable[[], Awaitable[Json]]
    ) -> Json | StepFailed:
        """Return what a service answered, or why it did not; either is recorded under `key` once.

        `request` stands for all that is asked. `call` raises OutOfReachError for trouble of our own, after which it
        is made again, and StepError for an answer that is a failure.
        """
        asked = Asked(key, work, digest(request))

        async def answer(_: int) -> StepSucceeded:
            return StepSucceeded(work, asked.digest, value=await call())

        outcome = await self._once(asked, answer)
        return outcome if isinstance(outcome, StepFailed) else outcome.value

    def note(self, key: str, payload: Payload) -> None:
        """Record an event that follows from steps, once."""
        self._use(key)
        if key not in self._recorded.notes:
            self._journal.enqueue(Draft(key, payload))

    async def control(self, key: str) -> Wishes:
        """Return the wishes recorded so far; the same ones whenever this key is asked again.

        A limit that ends the debate is a wish to end the rounds.
        """
        self._use(key)
        if key not in self._recorded.seen:
            if self.ending:
                await self.limiter.ended.wait()
            await self._journal.append(Draft(key, ControlSeen(self._recorded.wishes_through())))
        return self._recorded.wishes(self._recorded.seen[key])

    async def checkpoint(self, key: str, text: str) -> CheckpointClosed:
        """Put a text to a person, wait for what they wish, and return it; it is recorded once.

        Where nobody comes within the debate's limit for that, the debate pauses here.
        """
        self._use(key)
        recorded = self._recorded
        if key not in recorded.checkpoints:
            answered = self._answers.setdefault(key, asyncio.Event())
            if key not in recorded.open_checkpoints:
                until = self._clock.now() + timedelta(seconds=self.spec.limits.checkpoint_seconds)
                opened = CheckpointOpened(text, until)
                await self._journal.append(Draft(key, opened, recorded.attempt))
            await self._tell_status(WAITING)
            if key not in recorded.checkpoints:
                left = (recorded.open_checkpoints[key].until - self._clock.now()).total_seconds()
                if not await either(answered, self._clock, left):
                    if key not in self._decided:
                        self._decided.add(key)
                        raise CheckpointExpiredError(key)
                    await answered.wait()  # somebody has just come, and that is being recorded
            await self._tell_status(RUNNING)
        return recorded.checkpoints[key]

    def take_checkpoint(self, wanted: str = "") -> str | None:
        """Return the checkpoint at which a person is waited for, so that it cannot expire any more; None for none.

        With `wanted`, it is that one or none. Whoever takes it records how it was ended, and says so with `answered`.
        """
        undecided = (each for each in self._recorded.open_checkpoints if each not in self._decided)
        key = next((each for each in undecided if wanted in ("", each)), None)
        if key is not None:
            self._decided.add(key)
        return key

    def answered(self, key: str) -> None:
        """Go on from a checkpoint, now that the log holds how it was ended."""
        if key in self._answers:
            self._answers[key].set()

    def random(self, key: str) -> random.Random:
        """Return dice that fall the same for this debate and key, on every machine."""
        seed = hashlib.blake2b(f"{self._journal.debate}/{key}".encode(), digest_size=16).digest()
        return random.Random(seed)  # noqa: S311 - dice, not secrets

    async def _once(self, asked: Asked, call: Callable[[int], Awaitable[StepSucceeded]]) -> Outcome:
        attempt, recorded = self._look_up(asked)
        if recorded is not None:
            return recorded
        async with self._room(asked.work):
            flight = Flight(asked, attempt, started=(asked.key, attempt) in self._recorded.started)
            try:
                return await flight.outcome_of(self._made(flight, call))
            finally:
                self.limiter.flights.pop(asked.key, None)

    def _look_up(self, asked: Asked) -> tuple[int, Outcome | None]:
        """Return the present attempt at a step and its recorded outcome."""
        key, attempt = asked.key, 1
        self._use(key)
        if key in self._recorded.outcomes:
            attempt, recorded = self._recorded.outcomes[key]
            self._same_request(key, recorded.digest, asked.digest)
            if key not in self._recorded.retried or (self.ending and not asked.is_answer):
                return attempt, recorded
            attempt += 1
        started = self._recorded.started.get((key, attempt))
        if started is not None:
            self._same_request(key, started, asked.digest)
        return attempt, None

    def _room(self, work: Work) -> AbstractAsyncContextManager[object]:
        return self._rooms.get(work.activity) or nullcontext()

    async def _made(self, flight: Flight, call: Callable[[int], Awaitable[StepSucceeded]]) -> Outcome:
        asked, attempt = flight.asked, flight.attempt
        wait = _FIRST_RETRY_SECONDS
        while True:
            async with self.gate.passage():
                refused = await self.limiter.refusal(flight)
                if refused is not None:
                    return refused
                if flight.is_late():
                    return await flight.failure()
                if not flight.started:
                    self._journal.enqueue(Draft(asked.key, StepStarted(asked.work, asked.digest), attempt))
                    flight.started = True
                self.limiter.flights[asked.key] = flight
                outcome = await self._outcome(flight, call)
                if flight.is_late():
                    return await flight.failure()
                if outcome is not None:
                    del self.limiter.flights[asked.key]  # from here on no limit can change it
                    await self._journal.append(Draft(asked.key, outcome, attempt))
                    return outcome
            # Waited for outside of the gate, so that a pause need not wait for it too.
            await self._clock.sleep(wait)
            wait = min(wait * 2, _LONGEST_RETRY_SECONDS)

    async def _outcome(
        self, flight: Flight, call: Callable[[int], Awaitable[StepSucceeded]]
    ) -> Outcome | None:
        """Return the outcome of a call; None for trouble of our own, which is none and is never recorded."""
        began = self._clock.monotonic()
        with flight.call():
            try:
                answered = await call(flight.attempt)
            except StepError as error:
                flight.usage = error.usage
                took = round((self._clock.monotonic() - began) * 1000)
                asked = flight.asked
                return StepFailed(asked.work, asked.digest, error.reason, str(error), error.usage, took)
            except OutOfReachError as error:
                flight.usage = error.usage
                return None
            flight.usage = answered.reply.usage if answered.reply else flight.usage
            return answered

    def _call(self, key: str, attempt: int) -> Call:
        return Call(self._journal.tenant, self._journal.debate, key, attempt)

    async def _stop_call(self, key: str, attempt: int) -> None:
        await self._agents.cancel(self._call(key, attempt))

    def _use(self, key: str) -> None:
        if key in self._used:
            raise ReplayError(f"key {key} was used twice in one run")
        self._used.add(key)

    def _same_request(self, key: str, before: str, now: str) -> None:
        if before != now:
            raise ReplayError(f"step {key} asks something else than when it was recorded")

    def _span_attributes(self, agent: AgentSpec, key: str) -> dict[str, str]:
        return {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.id": agent.id,
            "gen_ai.agent.name": agent.name,
            "gen_ai.conversation.id": self._journal.debate,
            "parley.step": key,
        }
