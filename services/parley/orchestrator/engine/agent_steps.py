"""Steps that ask an agent: the request with its digest and estimate, and the call, which returns the reply as it is recorded."""

import asyncio
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final

from opentelemetry.trace import Status, StatusCode

from parley.orchestrator.engine.budget import Estimate, estimate
from parley.orchestrator.engine.prompt_digests import PromptDigests
from parley.orchestrator.engine.steps import (
    StepAttempt,
    StepRequest,
    complete_reply,
)
from parley.orchestrator.engine.stopped_calls import stop_call
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.model.errors import StepError
from parley.orchestrator.model.tasks import AnswerShape, Task, size_of_prompt
from parley.orchestrator.peers.agents import Agents, Call, generate_request
from parley.orchestrator.peers.fit_prompt import shorten_prompt
from parley.runtime.clock import Clock
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.telemetry import open_span, tracer
from parley.v1.agent_pb2 import Agent, Usage
from parley.v1.event_pb2 import StepSucceeded

_tracer = tracer(__name__)

_GATHER_SECONDS: Final = 0.25
"""How long a recorded answer waits for others, to be confirmed with them: an eighth of the time for which the gateway holds it, since a machine out of breath is late by itself."""


async def create_agent_step(
    key: str,
    agent: Agent,
    task: Task,
    shape: AnswerShape[Any] | None,
    seconds: float,
    *,
    digests: PromptDigests,
    documents: Mapping[str, str],
    scopes: frozenset[str],
) -> StepRequest:
    """Return the step that asks an agent, within so many seconds. `documents` are the digests of documents by their paths."""
    start = digests.find_start(agent, task, documents)
    size = size_of_prompt(start.find_rest(task))
    make_digest = partial(digests.digest, start, task, shape, seconds)
    return StepRequest(
        key,
        task.work,
        await in_thread_if_large(size, make_digest),
        partial(_estimate, task, agent),
        is_answer=task.is_answer,
        shape=shape,
        concurrency=task.concurrency,
        scopes=scopes,
        retry_once=task.retry_once,
    )


async def _estimate(task: Task, agent: Agent) -> Estimate:
    return await in_thread_if_large(size_of_prompt(task.prompt), partial(estimate, task, agent))


class AgentCaller:
    """Makes the calls of the steps of one debate that ask agents."""

    def __init__(self, agents: Agents, clock: Clock, journal: Journal) -> None:
        """Call through `agents`."""
        self._agents = agents
        self._clock = clock
        self._journal = journal
        self._held: set[Call] = set()
        self._to_forget: set[Call] = set()
        self._wake = asyncio.Event()
        self._telling = asyncio.Lock()
        self._forgotten: set[Call] = set()

    async def call(
        self, step: StepRequest, agent: Agent, task: Task, seconds: float, attempt: StepAttempt
    ) -> StepSucceeded:
        """Return the agent's reply within so many seconds. Raise StepError and ServiceUnavailableError as `Agents.generate`."""
        size = size_of_prompt(task.prompt)
        with open_span(_tracer, f"invoke_agent {agent.id}") as span:
            span.set_attributes(_span_attributes(agent, self._journal.debate, step.key))
            try:
                make_request = partial(
                    generate_request, agent, task, step.shape, seconds, attempt.bound, attempt.read_bound
                )
                request = await in_thread_if_large(size, make_request)
                left_out = await in_thread_if_large(
                    size, partial(shorten_prompt, request, attempt.prompt_share)
                )
                call = self._call_id(step.key, attempt.number)
                reply, is_held = await self._agents.generate(call, request)
                if is_held:
                    self._held.add(call)
                reply.prompt_characters_left_out += left_out
                read = len(reply.text) + (size if task.check else 0)
                await in_thread_if_large(read, partial(complete_reply, task, step, reply))
            except StepError as error:
                span.set_status(Status(StatusCode.ERROR, f"{error.reason}: {error}"))
                raise
            return StepSucceeded(work=task.work, digest=step.digest, reply=reply)

    def mark_recorded(self, key: str) -> None:
        """Note that the outcome of a step is recorded. `confirm_recorded` says so to a gateway that holds its answer."""
        recorded = [each for each in self._held if each.step == key]
        if recorded:
            self._held.difference_update(recorded)
            self._to_forget.update(recorded)
            self._wake.set()

    async def confirm_recorded(self) -> None:
        """Say which steps are recorded to a gateway that waits for that before it stores their answers, until cancelled."""
        while True:
            await self._wake.wait()
            await self._clock.sleep(_GATHER_SECONDS)
            self._wake.clear()
            recorded = self._to_forget.copy()
            await self._journal.wait_for_outcomes()
            await self._forget(recorded)

    async def forget_all(self) -> None:
        """Let the gateway forget all answers of the debate: those that the log has, and those that could not be read."""
        answered = {
            self._call_id(key, number)
            for key, (number, outcome) in self._journal.recorded.outcomes.items()
            if isinstance(outcome, StepSucceeded) and outcome.HasField("reply")
        }
        await self._forget(answered | self._to_forget)

    async def _forget(self, calls: AbstractSet[Call]) -> None:
        async with self._telling:  # what is on its way may fail
            left = sorted(calls - self._forgotten)
            if left and await self._agents.forget(left):
                self._forgotten.update(left)

    async def stop(self, key: str, attempt: int) -> Usage:
        """Stop the call of a step's attempt, and return what it used that is not counted yet."""
        stopped = await stop_call(self._journal, self._agents, key, attempt)
        return stopped.usage or Usage()

    def _call_id(self, key: str, attempt: int) -> Call:
        return Call(self._journal.tenant, self._journal.debate, key, attempt)


def _span_attributes(agent: Agent, debate: str, key: str) -> dict[str, str]:
    """Return the attributes of the span of a step that asks an agent: OpenTelemetry's names for generative AI, and the step's key."""
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": agent.id,
        "gen_ai.agent.name": agent.name,
        "gen_ai.conversation.id": debate,
        "parley.step": key,
    }
