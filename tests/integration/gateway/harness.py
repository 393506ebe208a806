"""A gateway over real gRPC in front of model servers over real HTTP."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from msgspec.structs import replace

from parley.gateway.__main__ import build
from parley.gateway.discovery import UsualServer
from parley.gateway.local_model.catalogue import SmallModel
from parley.gateway.local_model.model import LocalModel
from parley.gateway.providers import openai
from parley.gateway.providers.kind import ProviderKind
from parley.gateway.providers.kinds import KINDS
from parley.gateway.routing.breaker import BreakerPolicy
from parley.gateway.routing.call import Timeouts
from parley.gateway.settings import GatewaySettings
from parley.gateway.wire.api import Api
from parley.runtime.channel import channel
from parley.runtime.clock import Clock
from parley.runtime.draining import Draining
from parley.runtime.errors import ParleyError, from_rpc_error
from parley.runtime.server import RunningServer, ServerSettings, start_server
from parley.v1 import agent_pb2, gateway_pb2, gateway_pb2_grpc
from tests.support.model_server import ModelServer

KEY = "sk-test-0123456789abcdef"
RESPONSES, CHAT = "/v1/responses", "/v1/chat/completions"
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"stand": {"type": "string"}, "confidence": {"type": "integer", "minimum": 0}},
        "required": ["stand", "confidence"],
        "additionalProperties": False,
    }
)
QUICK = Timeouts(route_attempt_seconds=15.0, first_pause_seconds=0.02)
"""Short pauses; a route attempt has time enough on a machine that does much else."""


@dataclass(slots=True)
class Heard:
    """A Generate stream as its caller heard it."""

    attempts: list[gateway_pb2.RouteAttemptStarted] = field(default_factory=list)
    deltas: list[gateway_pb2.TextDelta] = field(default_factory=list)
    completed: gateway_pb2.GenerateCompleted | None = None

    def text(self, route_attempt: int = 1) -> str:
        """The deltas of a route attempt put together, which come in order."""
        text = ""
        for delta in self.deltas:
            if delta.route_attempt == route_attempt:
                assert delta.offset == len(text)
                text += delta.text
        return text

    @property
    def answer(self) -> gateway_pb2.GenerateCompleted:
        assert self.completed is not None
        return self.completed


@dataclass(frozen=True, slots=True)
class Gateway:
    stub: gateway_pb2_grpc.GatewayServiceStub
    server: RunningServer

    async def ask(
        self, asked: gateway_pb2.GenerateRequest | None = None, on_delta: Callable[[], None] = lambda: None
    ) -> Heard:
        heard = Heard()
        async for response in self.stub.Generate(asked or request(), timeout=180):
            assert heard.completed is None, "nothing comes after completed"
            match response.WhichOneof("event"):
                case "route_attempt":
                    heard.attempts.append(response.route_attempt)
                case "delta":
                    heard.deltas.append(response.delta)
                    on_delta()
                case "completed":
                    heard.completed = response.completed
        assert heard.completed is not None, "the stream ends with completed"
        return heard

    async def breaker(self, route: str) -> str:
        """The state of a route's breaker: CLOSED, OPEN or HALF_OPEN."""
        state = (await self.routes())[route].breaker
        return gateway_pb2.BreakerState.Name(state).removeprefix("BREAKER_STATE_")

    async def routes(self) -> dict[str, gateway_pb2.RouteStatus]:
        listed = await self.stub.ListRoutes(gateway_pb2.ListRoutesRequest())
        return {route.name: route for route in listed.routes}


async def failure_of(gateway: Gateway, asked: gateway_pb2.GenerateRequest | None = None) -> ParleyError:
    try:
        heard = await gateway.ask(asked)
    except grpc.aio.AioRpcError as error:
        return from_rpc_error(error)
    raise AssertionError(f"it was answered: {heard.answer.text[:200]}")


def request(
    text: str = "Is water wet?",
    *,
    routes: Sequence[str] = (),
    timeout: float | None = None,
    step: str | None = None,
    **fields: Any,
) -> gateway_pb2.GenerateRequest:
    """A request with one user part; `step` gives it a call id."""
    asked = gateway_pb2.GenerateRequest(
        agent=agent_pb2.Agent(id="ada", name="Ada", role="architect", routes=routes),
        prompt=[gateway_pb2.PromptPart(role=gateway_pb2.PROMPT_ROLE_USER, text=text)],
        **fields,
    )
    if timeout is not None:
        asked.timeout.CopyFrom(Duration(seconds=int(timeout), nanos=round(timeout % 1 * 1e9)))
    if step is not None:
        asked.call_id.CopyFrom(gateway_pb2.CallId(tenant="t", debate_id="deb-1", step=step, step_attempt=1))
    return asked


def make_structured_request(
    text: str = "Is water wet?", *, accepts_prose: bool = False
) -> gateway_pb2.GenerateRequest:
    schema = gateway_pb2.AnswerSchema(name="position", json_schema=SCHEMA, accepts_prose=accepts_prose)
    return request(text, schema=schema)


def paths(server: ModelServer) -> list[str]:
    return [record.path for record in server.ledger.calls]


def serve_as_local_model(server: ModelServer, monkeypatch: pytest.MonkeyPatch, name: str = "tiny") -> None:
    """Let gateways of this test ask the server instead of a model that they would start on this machine."""

    @asynccontextmanager
    async def local_model(_model: SmallModel) -> AsyncIterator[LocalModel]:
        yield LocalModel(server.base_url, name, 2048, 4, cast(Any, None))

    monkeypatch.setattr("parley.gateway.__main__.local_model", local_model)


@asynccontextmanager
async def run_gateway(
    settings: GatewaySettings,
    *,
    clock: Clock | None = None,
    timeouts: Timeouts = QUICK,
    environment: dict[str, str] | None = None,
    policy: BreakerPolicy | None = None,
    kinds: Mapping[str, ProviderKind] = KINDS,
    usual_servers: Sequence[UsualServer] = (),
    expects_debate: bool = False,
) -> AsyncIterator[Gateway]:
    draining = Draining()
    given: dict[str, Any] = {} if policy is None else {"policy": policy}
    with TemporaryDirectory() as folder:
        if "store" not in settings.model_fields_set:
            settings = settings.model_copy(update={"store": f"sqlite:///{folder}"})
        async with (
            build(
                settings,
                environment=environment or {},
                draining=draining,
                clock=clock,
                timeouts=timeouts,
                kinds=kinds,
                usual_servers=usual_servers,
                expects_debate=expects_debate,
                **given,
            ) as service,
            start_server(
                [service], ServerSettings(grace_seconds=1.0, guard=settings.guard()), draining=draining
            ) as server,
            channel(server.address) as connection,
        ):
            yield Gateway(gateway_pb2_grpc.GatewayServiceStub(connection), server)


def settings_for(server: ModelServer, **more: Any) -> GatewaySettings:
    values: dict[str, Any] = {
        "openai_api_key": KEY,
        "openai_base_url": server.base_url,
        "model": "m-1",
        "local_model": "off",
        "grace_seconds": 1.0,
        **more,
    }
    return GatewaySettings(**values)


def kinds_with(*, api: Api | None = None, first_api: Api = Api.RESPONSES) -> Mapping[str, ProviderKind]:
    """The kinds of providers, with OpenAI's asked by this API, or by this one first.

    Responses is first, so that a switch of the server says which API a test is about.
    """
    return {**KINDS, openai.KIND.name: replace(openai.KIND, api=api, first_api=first_api)}


@asynccontextmanager
async def run_with_server(
    server: ModelServer, *, clock: Clock | None = None, api: Api | None = None, **more: Any
) -> AsyncIterator[Gateway]:
    """A gateway whose only provider is this server, with one model by default, asked by one API or by both."""
    timeouts, kinds = more.pop("timeouts", QUICK), kinds_with(api=api)
    async with run_gateway(
        settings_for(server, **more), clock=clock, timeouts=timeouts, kinds=kinds
    ) as gateway:
        yield gateway


def routes_file(
    folder: Path, *servers: ModelServer, extra: str = "", api: str = "responses", **more: Any
) -> GatewaySettings:
    """Settings with a file of providers p1, p2, … one a server, and default routes p1/m, p2/m, … in order.

    The API is fixed, so that an outage is no question of the API.
    """
    lines = ["providers:"]
    for number, server in enumerate(servers, 1):
        lines += [
            f"  - name: p{number}",
            f"    base_url: {server.base_url}",
            f"    api_key_env: KEY_{number}",
            f"    api: {api}",
        ]
    lines.append("routes:")
    for number in range(1, len(servers) + 1):
        lines += [f"  - provider: p{number}", "    model: m"]
    path = folder / "agents.yaml"
    path.write_text("\n".join(lines) + "\n" + extra)
    values: dict[str, Any] = {"agents_file": path, "local_model": "off", "grace_seconds": 1.0, **more}
    return GatewaySettings(**values)
