"""What debates with the same documents take: each document once in a process, however many debates and calls have it."""

import gc
from contextlib import AsyncExitStack, aclosing
from functools import partial
from pathlib import Path

from parley.client import ParleyClient
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import ContextDocument, DebateSpec, Participant
from parley.v1.panel_pb2 import PanelSettings
from tests.e2e.harness import SERVICES, system
from tests.support.model_server import Fault, FaultKind, Ledger, ModelServer, Rule
from tests.support.process_status import resident_bytes

MIB = 1024 * 1024
BYTES = 2 * MIB
CALLS = 3
"""Of a debate that begins: a list of requirements and two proposals."""


def _spec(number: int) -> DebateSpec:
    return DebateSpec(
        question=f"What is to be done about {number}?",
        agents=[Participant(agent=Agent(id=each, role="architect")) for each in ("ada", "bo")],
        judge=Participant(agent=Agent(id="judge", role="generalist")),
        panel=PanelSettings(rounds=1),
        context=[ContextDocument(path="large.md", text="Words of a document. " * (BYTES // 21))],
    )


def _has_calls(count: int, ledger: Ledger) -> bool:
    return ledger.in_flight == count


async def test_more_watched_debates_with_the_same_documents_take_no_more_copies(tmp_path: Path) -> None:
    silent = Rule(fault=Fault(FaultKind.HANG))
    async with ModelServer(rules=[silent], keeps_calls=False) as models:
        with system(tmp_path, models.base_url, {"PARLEY_TENANT_DOCUMENT_BYTES": "0"}) as services:
            for name in SERVICES:
                services.start(name)
            services.wait(*SERVICES)
            async with ParleyClient(services.addresses["orchestrator"]) as client, AsyncExitStack() as stack:
                taken: dict[int, dict[str, int]] = {}
                for count in (4, 16):
                    for number in range(len(taken) and 4, count):
                        events = client.watch(await client.create_debate(_spec(number)))
                        await stack.enter_async_context(aclosing(events))
                        await anext(events)
                    await models.ledger.wait_for(partial(_has_calls, count * CALLS), within=120)
                    gc.collect()
                    taken[count] = {
                        name: resident_bytes(services.pid(name)) for name in ("orchestrator", "gateway")
                    }
    for name in ("orchestrator", "gateway"):
        more = taken[16][name] - taken[4][name]
        assert more < 12 * BYTES, f"{name} took {more / MIB:.0f} MiB for 12 more debates"
