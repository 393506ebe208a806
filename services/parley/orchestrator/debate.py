"""The handle that formats and phases are written against: ask, step, note, control, random.

If the log has a key, the recorded outcome comes back and nothing is called; so running a format again on a debate's
log is resuming it. What makes that true is enforced here: a key is used once a run, and a step asks the same thing
whenever it is asked.
"""

import hashlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from opentelemetry.trace import Status, StatusCode

from parley.orchestrator.agents import Agents, Call
from parley.orchestrator.canonical import digest
from parley.orchestrator.envelope import Draft
from parley.orchestrator.errors import OutOfReachError, StepError
from parley.orchestrator.events import (
    ControlSeen,
    Json,
    Payload,
    Reply,
    StepFailed,
    StepStarted,
    StepSucceeded,
    Work,
)
from parley.orchestrator.gate import Gate
from parley.orchestrator.journal import Journal
from parley.orchestrator.recorded import Outcome, Wishes
from parley.orchestrator.services import Services
from parley.orchestrator.spec import AgentSpec, DebateSpec
from parley.orchestrator.tasks import Task
from parley.runtime.clock import Clock
from parley.runtime.telemetry import tracer

__all__ = ["Debate", "ReplayError"]

_FIRST_RETRY_SECONDS = 0.2
_LONGEST_RETRY_SECONDS = 5.0

_tracer = tracer(__name__)


class ReplayError(Exception):
    """A format did not do again what it did before; the debate must not go on with this version of it."""


class Debate:
    """One run of a debate by its owner.

    Attributes:
        spec: What is debated.
        services: The other services, to be asked in steps.
        gate: Where calls wait while the debate is paused.
    """

    def __init__(
        self, spec: DebateSpec, journal: Journal, agents: Agents, services: Services, clock: Clock
    ) -> None:
        """Stand on a journal that is claimed and being written."""
        self.id = journal.debate
        self.spec = spec
        self.services = services
        self.gate = Gate()
        self._journal = journal
        self._recorded = journal.recorded
        self._agents = agents
        self._clock = clock
        self._used: set[str] = set()

    async def ask(self, key: str, agent: AgentSpec, task: Task) -> Reply | StepFailed:
        """Return an agent's reply, or why there is none; either is recorded under `key` once.

        Raises:
            ReplayError: the key was used in this run, or something else was asked under it before.
        """
        asked = digest({"agent": asdict(agent), "task": asdict(task)})

        async def call(attempt: int) -> StepSucceeded:
            named = Call(self._journal.tenant, self._journal.debate, key, attempt)
            with _tracer.start_as_current_span(f"invoke_agent {agent.id}") as span:
                span.set_attributes(self._span_attributes(agent, key))
                try:
                    reply = await self._agents.generate(named, agent, task, self.spec.call_seconds)
                except StepError as error:
                    span.set_status(Status(StatusCode.ERROR, f"{error.reason}: {error}"))
                    raise
                return StepSucceeded(task.work, asked, reply=reply)

        outcome = await self._once(key, task.work, asked, call)
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
        asked = digest(request)

        async def answer(_: int) -> StepSucceeded:
            return StepSucceeded(work, asked, value=await call())

        outcome = await self._once(key, work, asked, answer)
        return outcome if isinstance(outcome, StepFailed) else outcome.value

    def note(self, key: str, payload: Payload) -> None:
        """Record an event that follows from steps, once."""
        self._use(key)
        if key not in self._recorded.notes:
            self._journal.enqueue(Draft(key, payload))

    async def control(self, key: str) -> Wishes:
        """Return the wishes recorded so far; the same ones whenever this key is asked again."""
        self._use(key)
        if key not in self._recorded.seen:
            through = max((sequence for sequence, _ in self._recorded.interventions.values()), default=0)
            await self._journal.append(Draft(key, ControlSeen(through)))
        return self._recorded.wishes(self._recorded.seen[key])

    def random(self, key: str) -> random.Random:
        """Return dice that fall the same for this debate and key, on every machine."""
        seed = hashlib.blake2b(f"{self._journal.debate}/{key}".encode(), digest_size=16).digest()
        return random.Random(seed)  # noqa: S311 - dice, not secrets

    async def _once(
        self, key: str, work: Work, asked: str, call: Callable[[int], Awaitable[StepSucceeded]]
    ) -> Outcome:
        self._use(key)
        attempt = 1
        if key in self._recorded.outcomes:
            attempt, recorded = self._recorded.outcomes[key]
            self._same_request(key, recorded.digest, asked)
            if key not in self._recorded.retried:
                return recorded
            attempt += 1
        started = self._recorded.started.get((key, attempt))
        if started is not None:
            self._same_request(key, started, asked)
        wait = _FIRST_RETRY_SECONDS
        while True:
            async with self.gate.passage():
                if started is None:
                    self._journal.enqueue(Draft(key, StepStarted(work, asked), attempt))
                    started = asked
                outcome = await self._outcome(work, asked, attempt, call)
                if outcome is not None:
                    await self._journal.append(Draft(key, outcome, attempt))
                    return outcome
            # Waited for outside of the gate, so that a pause need not wait for it too.
            await self._clock.sleep(wait)
            wait = min(wait * 2, _LONGEST_RETRY_SECONDS)

    async def _outcome(
        self, work: Work, asked: str, attempt: int, call: Callable[[int], Awaitable[StepSucceeded]]
    ) -> Outcome | None:
        """Return the outcome of a call; None for trouble of our own, which is none and is never recorded."""
        began = self._clock.monotonic()
        try:
            return await call(attempt)
        except StepError as error:
            took = round((self._clock.monotonic() - began) * 1000)
            return StepFailed(work, asked, error.reason, str(error), error.usage, took)
        except OutOfReachError:
            return None

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
