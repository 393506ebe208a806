"""Clients of a system under chaos: they ask for debates, watch them, intervene in them, and write down what they hear."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
import grpc

from parley.client import DebateSpec, ParleyClient, ParleyError
from parley.client.access import channel_settings
from parley.orchestrator.log.reading import log_name
from parley.runtime.channel import channel
from parley.runtime.errors import from_rpc_error, is_transport
from parley.runtime.watching import WatchStream, watch_events
from parley.storage.opening import open_store
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from parley.v1.agent_pb2 import Agent, PromptText, SummarySettings
from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.debate_pb2 import Participant
from parley.v1.moderated_pb2 import ModeratedSettings
from parley.v1.panel_pb2 import PanelSettings, Termination
from tests.chaos.harness import System
from tests.chaos.history import Accepted, History, Intervention, Seen, Watch
from tests.support.model_server import read_ledger
from tests.support.orchestration import kind_of

T = TypeVar("T")

_TENANT = "default"
_PATIENCE = 90.0
_ANSWERED_WITHIN = 300.0
_LONGEST = 600.0
"""Seconds of a debate under any faults; whoever watches one for longer hangs."""
_TRY_AGAIN = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})


def spec(
    mark: str,
    *,
    agents: int = 2,
    rounds: int = 1,
    recall: bool = False,
    models: Mapping[str, str] | None = None,
    termination: Termination | None = None,
    settings: ArenaSettings | ModeratedSettings | None = None,
    **more: Any,
) -> DebateSpec:
    """Return a panel whose agents all have the mark in their own prompts, so that no two steps ask the same.

    A mark ends with a dot. The question of a panel lacks it there, so that a debate that recalls another has its own mark
    only. `models` are those of single agents, `settings` those of another format, `more` are fields of the specification.
    """

    def make_participant(name: str) -> Participant:
        prompt = PromptText(text=f"You are {name} of {mark}.", source="built-in")
        agent = Agent(id=name, role="architect", system_prompt=prompt)
        if models and name in models:
            agent.routes.append(f"openai/{models[name]}")
        return Participant(agent=agent)

    told = mark.removesuffix(".")
    match settings:
        case ArenaSettings():
            more["arena"] = settings
        case ModeratedSettings():
            more["moderated"] = settings
            told = mark  # its perspectives have prompts of their own
        case None:
            off = SummarySettings(enabled=False)
            more["panel"] = PanelSettings(rounds=rounds, summaries=off, termination=termination)
    return DebateSpec(
        question=f"Which way of building it lasts longest, asks {told}?",
        agents=[make_participant(name) for name in ("ada", "bo", "cy", "dee")[:agents]],
        judge=make_participant("judge"),
        history_limit=3 if recall else 0,
        **more,
    )


@dataclass
class Clients:
    """Everything that is asked of a system, and what came back; use it as `async with`."""

    system: System
    accepted: list[Accepted] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)
    interventions: list[Intervention] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    async def __aenter__(self) -> Self:
        target = self.system.target()
        self._channel = channel(target, channel_settings(target, _TENANT))
        self._stub = orchestrator_pb2_grpc.OrchestratorServiceStub(self._channel)
        self.client = await ParleyClient(self.system.target(), patience=_PATIENCE).__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.client.__aexit__(kind, error, trace)
        await self._channel.close()

    async def create(self, debate: DebateSpec, mark: str, *, at: str | None = None) -> str:
        """Ask for a debate until it is accepted, at one replica first if it is named; return its id."""
        request_id = uuid.uuid4().hex
        made = None
        if at is not None:
            async with ParleyClient(self.system.target(at), patience=0.5) as first:
                try:
                    made = await first.create_debate(debate, request_id)
                except ParleyError as error:
                    if error.code not in _TRY_AGAIN:
                        raise
        if made is None:
            made = await call_until_answered(lambda: self.client.create_debate(debate, request_id))
        self.accepted.append(Accepted(made, request_id, mark))
        self.system.known.add(made)
        return made

    async def watch(self, debate: str, after: int = 0) -> None:
        """Watch a debate to its end, over however many streams that takes."""
        streams: list[list[Seen]] = []

        def open_watch(last: int) -> WatchStream:
            seen: list[Seen] = []
            streams.append(seen)
            request = orchestrator_pb2.WatchDebateRequest(debate_id=debate, after_sequence=last)
            return _Noting(self._stub.WatchDebate(request), seen)

        ended, problem = False, ""
        try:
            async with asyncio.timeout(_LONGEST):
                # A busy machine may say nothing for minutes: what counts is that the debate ends.
                async for _ in watch_events(open_watch, after, _LONGEST):
                    pass
            ended = True
        except TimeoutError:
            problem = f"it had not ended after {_LONGEST:g} s"
        except ParleyError as error:
            problem = f"{error.code.name} {error.reason}: {error}"
        finally:
            self.watches.append(Watch(debate, after, streams, ended, problem))

    async def intervene(self, debate: str, act: str, *, at: str | None = None) -> Intervention:
        """Intervene, at one replica first if it is named, until that is answered or refused."""
        request_id = uuid.uuid4().hex
        sequence: int | None = None
        try:
            if at is not None:
                async with ParleyClient(self.system.target(at), patience=0.5) as first:
                    with suppress(ParleyError):
                        sequence = await _send(first, debate, act, request_id)
            if sequence is None:
                sequence = await call_until_answered(lambda: _send(self.client, debate, act, request_id))
        except ParleyError as error:
            if error.code == grpc.StatusCode.FAILED_PRECONDITION:
                sequence = 0
            else:
                raise
        finally:
            made = Intervention(debate, request_id, act, sequence)
            self.interventions.append(made)
        return made

    async def history(self) -> History:
        """Return all that is known, once no call is in flight any more."""
        await self.wait_for_calls(0)
        told = [each.debate for each in self.accepted]
        others = await call_until_answered(self._list_others)
        async with open_store(self.system.store_url, "orchestrator", reading=True) as store:
            logs = {
                debate: await store.log.read(log_name(_TENANT, debate), limit=100_000)
                for debate in (*told, *others)
            }
        return History(
            accepted=tuple(self.accepted),
            logs=logs,
            calls=read_ledger(self.system.ledger),
            watches=tuple(self.watches),
            interventions=tuple(self.interventions),
            faults=tuple(each for each in self.system.faults if each.ended >= self.began),
            wall=time.time() - time.monotonic(),
            others=tuple(others),
        )

    async def _list_others(self) -> list[str]:
        return [each.id async for each in self.client.list() if each.id not in self.system.known]

    async def wait_for_calls(self, count: int) -> None:
        """Wait until so many calls are in flight at the model server."""
        ends = time.monotonic() + _ANSWERED_WITHIN
        async with aiohttp.ClientSession() as session:
            while True:
                async with session.get(f"{self.system.model_server_url()}/ledger") as response:
                    if (found := (await response.json())["in_flight"]) == count:
                        return
                assert time.monotonic() < ends, (
                    f"{found} calls are in flight at the model server, not {count}"
                )
                await asyncio.sleep(0.05)


class _Noting:
    """A stream that notes the events it sends, before anything passes over one of them."""

    def __init__(
        self,
        stream: grpc.aio.UnaryStreamCall[
            orchestrator_pb2.WatchDebateRequest, orchestrator_pb2.WatchDebateResponse
        ],
        seen: list[Seen],
    ) -> None:
        self._stream = stream
        self._seen = seen

    async def __aiter__(self) -> AsyncIterator[orchestrator_pb2.WatchDebateResponse]:
        async for response in self._stream:
            if response.WhichOneof("message") == "event":
                event = response.event
                self._seen.append(Seen(event.sequence, kind_of(event), event.hash))
            yield response

    def cancel(self) -> bool:
        return self._stream.cancel()


async def _send(client: ParleyClient, debate: str, act: str, request_id: str) -> int:
    acts: Mapping[str, Callable[[], Awaitable[int]]] = {
        "approve": lambda: client.approve(debate, request_id=request_id),
        "cancel": lambda: client.cancel(debate, "enough", request_id=request_id),
        "continue_debate": lambda: client.continue_debate(debate, request_id=request_id),
        "end": lambda: client.end_rounds(debate, request_id=request_id),
        "guide": lambda: client.guide(debate, "Think of cost.", request_id=request_id),
        "mute": lambda: client.mute(debate, "bo", request_id=request_id),
        "pause": lambda: client.pause(debate, request_id=request_id),
        "resume": lambda: client.resume(debate, request_id=request_id),
    }
    return await acts[act]()


async def call_until_answered(call: Callable[[], Awaitable[T]]) -> T:
    """Call again while a service is away, and return the answer."""
    ends = time.monotonic() + _ANSWERED_WITHIN
    while True:
        try:
            return await call()
        except (ParleyError, grpc.aio.AioRpcError) as broken:
            error = broken if isinstance(broken, ParleyError) else from_rpc_error(broken)
            # The client asked as long as it has patience; what broke in between may come as any status of a connection.
            is_away = error.code in _TRY_AGAIN or is_transport(error)
            if not is_away or time.monotonic() > ends:
                raise
        await asyncio.sleep(0.2)
