"""The store goes away in the middle of a call: whatever the RPC, its caller is told to call again."""

import inspect
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from msgspec.structs import replace

from parley.memory import __main__ as memory_main
from parley.orchestrator import __main__ as orchestrator_main
from parley.orchestrator.links.tokens import LinkTokens
from parley.orchestrator.model.times import timestamp
from parley.runtime import audit
from parley.runtime.clock import SystemClock
from parley.runtime.errors import from_rpc_error
from parley.runtime.identity.identity import DEFAULT_TENANT, current_identity
from parley.runtime.identity.roles import needed_role
from parley.storage.opening import Store, open_store
from parley.storage.ports import StoreUnavailableError
from parley.v1.access_pb2 import ACCESS_ROLE_ADMIN, ACCESS_ROLE_LINK
from parley.v1.debate_pb2 import DebateSpec
from parley.v1.link_pb2 import LinkClaims
from tests.integration.orchestrator.around import Around
from tests.support import real_services
from tests.support.access import SECRET, Headers, key_for, methods, stub_answers
from tests.support.full_tenant import QUESTION, fill_tenant
from tests.support.receipts import OLD, pem_of
from tests.support.right_requests import RIGHT_REQUESTS
from tests.support.scripted_gateway import ScriptedGateway

SERVICES: Final = ("OrchestratorService", "RatingsService", "MemoryService")
METHODS: Final = sorted(
    (each for each in methods() if each.containing_service.name in SERVICES),
    key=lambda each: each.name.startswith(("Delete", "Forget", "Revoke")),
)
"""What takes away what others ask about comes last."""
MOST_STORE_CALLS: Final = 60
"""Of one RPC, each of which fails once here."""
_OF_MEMORY, _OF_RATINGS = "memory knows it", "ratings know it"
ASK_NO_STORE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("SearchMemory", "GetMemory", "ForgetMemory"), _OF_MEMORY),
    **dict.fromkeys(("ListMemoryPatterns", "ListMemoryPositions", "ListMemoryMoments"), _OF_MEMORY),
    **dict.fromkeys(("ListAgentRatings", "ListAgentMatches"), _OF_RATINGS),
    **dict.fromkeys(("GetAgentPersona", "ListAgentRelationships"), _OF_RATINGS),
    "ListAvailableAgents": "the gateway knows it",
    "ListReceiptKeys": "is in the settings",
    "ListPatterns": "none was found in this debate, and memory alone writes them",
}
"""RPCs that call no store of their service, and why."""


class Faults:
    """Which calls of the store fail: those of one RPC, after some that pass."""

    def __init__(self) -> None:
        self.method = "no method"
        self.passing = 0
        """Calls that pass yet."""
        self.met = 0

    def meet(self) -> None:
        # Whoever authenticates a caller of the orchestrator has errors of its own.
        is_entering = "Orchestrator" in self.method and not current_identity().proven
        if audit._call.get().method != self.method or is_entering:
            return
        if self.passing:
            self.passing -= 1
            return
        self.met += 1
        raise StoreUnavailableError("it is out of order")


class Failing:
    """Documents or a log before which faults stand."""

    def __init__(self, inner: Any, faults: Faults) -> None:
        self._inner, self._faults = inner, faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            self._faults.meet()
            return await found(*args, **kwargs)

        return call


@dataclass
class Served:
    """Services whose stores fail as a test says, a caller who has something of everything, and the holder of a link."""

    connections: Mapping[str, grpc.aio.Channel]
    caller: Headers
    holder: Headers
    ids: Mapping[str, str]
    faults: Faults

    def request(self, method: MethodDescriptor) -> Any:
        asked: Any = GetMessageClass(method.input_type)()
        asked.CopyFrom(RIGHT_REQUESTS[method.input_type.name][0])
        # A match that was recorded here is known without the store: it is asked for another one.
        ids = {} if method.name == "RecordMatch" else self.ids
        for name in ids.keys() & method.input_type.fields_by_name.keys():
            setattr(asked, name, ids[name])
        if method.name == "Recall":
            asked.text = QUESTION  # of a text that is like nothing recorded, nothing is read
        if "spec" in method.input_type.fields_by_name:
            asked.spec.CopyFrom(DebateSpec(question="Is water wet?", hook_ids=[self.ids["hook_id"]]))
        return asked

    async def reason(self, method: MethodDescriptor, passing: int) -> str:
        """Why an RPC fails if so many calls of the store pass; empty if it does not."""
        name = f"{method.containing_service.full_name}/{method.name}"
        self.faults.method, self.faults.passing, self.faults.met = name, passing, 0
        caller = self.holder if needed_role(name) == ACCESS_ROLE_LINK else self.caller
        try:
            await stub_answers(
                self.connections[method.containing_service.name], method, caller, self.request(method)
            )
        except grpc.aio.AioRpcError as error:
            return from_rpc_error(error).reason
        return ""


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    faults = Faults()

    @asynccontextmanager
    async def open_failing(*args: Any, **kwargs: Any) -> AsyncIterator[Store]:
        async with open_store(*args, **kwargs) as store:
            documents, log = Failing(store.documents, faults), Failing(store.log, faults)
            yield replace(store, documents=documents, log=log)

    for module in (orchestrator_main, memory_main, real_services):
        monkeypatch.setattr(module, "open_store", open_failing)
    around, receipts = Around(tmp_path), tmp_path / "receipts.pem"
    receipts.write_text(pem_of(OLD))
    async with (
        ScriptedGateway().served() as gateway,
        around.all(),
        around.orchestrating(
            gateway,
            auth="key",
            hook_folder=tmp_path,
            receipt_keys=str(receipts),
            link_secrets=SECRET,
            public_url="https://parley.example",
        ) as orchestrator,
        open_store(f"sqlite:///{tmp_path / 'orchestrator'}", "orchestrator") as store,
        grpc.aio.insecure_channel(around.ratings) as ratings,
        grpc.aio.insecure_channel(around.memory) as memory,
    ):
        connections = dict(zip(SERVICES, (orchestrator.connection, ratings, memory), strict=True))
        caller = await key_for(store.documents, DEFAULT_TENANT, {ACCESS_ROLE_ADMIN})
        ids = await fill_tenant(orchestrator.stub, caller)
        ids["token"] = link_to(ids["debate_id"], ids["hook_id"])
        holder = (("authorization", f"Bearer {ids['token']}"),)
        yield Served(connections, caller, holder, ids, faults)


def link_to(debate: str, hook: str) -> str:
    until = timestamp(SystemClock().now() + timedelta(hours=1))
    claims = LinkClaims(tenant=DEFAULT_TENANT, debate_id=debate, hook_id=hook, expire_time=until)
    return LinkTokens([SECRET]).sign(claims)


async def test_whoever_calls_while_the_store_is_away_is_told_to_call_again(served: Served) -> None:
    untyped, ask_no_store = dict[str, str](), set[str]()
    for method in METHODS:
        for passing in range(MOST_STORE_CALLS):
            reason = await served.reason(method, passing)
            if not served.faults.met:
                ask_no_store |= set() if passing else {method.name}
                break
            if reason not in {"", "STORE_UNAVAILABLE"}:
                untyped[method.name] = f"{reason} if call {passing + 1} of the store fails"
    assert not untyped, "call the store within `map_store_errors()`"
    assert ask_no_store == ASK_NO_STORE.keys(), (
        "let the request or `fill_tenant` be such that the RPC calls the store, or add a line to ASK_NO_STORE here"
    )
