"""However large its documents and answers are, a debate leaves the orchestrator's loop to everyone: nothing holds it for 50 ms."""

import gc
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from parley.v1 import orchestrator_pb2 as pb
from parley.v1.debate_pb2 import ContextDocument, DebateSpec
from parley.v1.panel_pb2 import PanelSettings
from tests.support.loop_holds import loop_holds
from tests.support.orchestration import Orchestrator, events_of, kind_of, orchestrating
from tests.support.scripted_gateway import ScriptedGateway, criticism

_MILLISECONDS = 50
_TRIES = 4
_WITHIN = 60.0


@pytest.fixture(autouse=True)
def _collected_seldom() -> Iterator[None]:
    """Keep the garbage collector from going through what all tests hold; a process that serves does so too."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param([ContextDocument(path="a.md", text="Words of a document. " * 199_000)], id="large"),
        pytest.param(
            [ContextDocument(path=f"{n}.md", text="Words of a document. " * 90) for n in range(2_000)],
            id="many",
        ),
    ],
)
async def test_no_debate_with_documents_holds_the_loop(
    documents: Sequence[ContextDocument], tmp_path: Path
) -> None:
    longest: list[Sequence[str]] = []
    async with ScriptedGateway().served() as server, orchestrating(tmp_path, server) as orchestrator:
        await _held(orchestrator, [])  # loads what the first debate loads
        for _ in range(_TRIES):
            with loop_holds() as holds:
                debate = await _held(orchestrator, documents)
                for view in (pb.DEBATE_VIEW_FULL, pb.DEBATE_VIEW_SUMMARY):
                    await orchestrator.stub.GetDebate(
                        pb.GetDebateRequest(debate_id=debate, view=view), timeout=_WITHIN
                    )
            if holds.longest < _MILLISECONDS:
                return
            longest.append(holds.told()[:3])
    raise AssertionError(f"the loop was held for more than {_MILLISECONDS} ms: {longest}")


@pytest.mark.parametrize("unit", ["\n", "> ", "\t\n", "Position:\n", "Ready: yes\n", "<think>"])
async def test_no_answers_of_a_model_hold_the_loop(unit: str, tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    gateway.critic = lambda step, agent: criticism(f"{agent} misses the cost at {step}.")
    longest: list[Sequence[str]] = []
    async with gateway.served() as server, orchestrating(tmp_path, server) as orchestrator:
        await _held(orchestrator, [])
        gateway.text = lambda step, agent: f"{unit * (200_000 // len(unit))}\n{agent} answers {step}."
        for _ in range(_TRIES):
            with loop_holds() as holds:
                await _held(orchestrator, [])
            if holds.longest < _MILLISECONDS:
                return
            longest.append(holds.told()[:3])
    raise AssertionError(f"the loop was held for more than {_MILLISECONDS} ms: {longest}")


async def _held(orchestrator: Orchestrator, documents: Sequence[ContextDocument]) -> str:
    spec = DebateSpec(question="Is water wet?", context=documents, panel=PanelSettings(rounds=1))
    request = pb.CreateDebateRequest(request_id=uuid.uuid4().hex, spec=spec)
    debate = (await orchestrator.stub.CreateDebate(request, timeout=_WITHIN)).debate_id
    watched = pb.WatchDebateRequest(debate_id=debate)
    messages = [each async for each in orchestrator.stub.WatchDebate(watched, timeout=_WITHIN)]
    assert kind_of(events_of(messages)[-1]) == "closed"
    return debate
