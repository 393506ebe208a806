"""However large its documents and answers are, a debate leaves the orchestrator's loop to everyone: nothing holds it for 50 ms."""

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from parley.v1 import orchestrator_pb2 as pb
from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.debate_pb2 import ContextDocument, DebateSpec
from parley.v1.moderated_pb2 import ModeratedSettings
from parley.v1.panel_pb2 import PanelSettings
from tests.support.arena_debates import ArenaScript
from tests.support.loop_holds import longest_hold_allowed, loop_holds
from tests.support.moderated_debates import ModeratedScript
from tests.support.orchestration import Orchestrator, events_of, kind_of, orchestrating
from tests.support.scripted_answers import criticism
from tests.support.scripted_gateway import ScriptedGateway

_TRIES = 4
_CHARACTERS = 600_000
"""Of an answer: together, many times what a context takes."""
_WITHIN = 60.0


def _document(name: str, sentences: int) -> ContextDocument:
    return ContextDocument(path=f"{name}.md", text="Words of a document. " * sentences)


def _make_moderated_gateway() -> ScriptedGateway:
    return ModeratedScript(characters=_CHARACTERS // 3).gateway()


_QUESTION: Final = "Is water wet?"
_PANEL: Final = DebateSpec(question=_QUESTION, panel=PanelSettings(rounds=2))
_ARENA: Final = DebateSpec(question=_QUESTION, arena=ArenaSettings(revision_rounds=1))
_MODERATED: Final = DebateSpec(
    question=_QUESTION, moderated=ModeratedSettings(max_rounds=2, checkpoints=False)
)
_FORMATS: Final = pytest.mark.parametrize(
    ("begun", "spec"),
    [
        pytest.param(ScriptedGateway, _PANEL, id="panel"),
        pytest.param(ArenaScript().gateway, _ARENA, id="arena", marks=pytest.mark.long),
        pytest.param(_make_moderated_gateway, _MODERATED, id="moderated", marks=pytest.mark.long),
    ],
)


@pytest.mark.parametrize(
    ("documents", "begun", "spec"),
    [
        pytest.param([_document("a", 199_000)], ScriptedGateway, _PANEL, id="large"),
        pytest.param([_document(str(n), 90) for n in range(2_000)], ScriptedGateway, _PANEL, id="many"),
        pytest.param([_document("a", 50_000)], _make_moderated_gateway, _MODERATED, id="moderated"),
    ],
)
async def test_no_debate_with_documents_holds_the_loop(
    documents: Sequence[ContextDocument],
    begun: Callable[[], ScriptedGateway],
    spec: DebateSpec,
    tmp_path: Path,
) -> None:
    longest: list[Sequence[str]] = []
    asked = DebateSpec(context=documents)
    asked.MergeFrom(spec)
    async with begun().served() as server, orchestrating(tmp_path, server, over_sockets=True) as orchestrator:
        await _run_to_end(orchestrator, spec)  # loads what the first debate loads
        for _ in range(_TRIES):
            with loop_holds() as holds:
                debate = await _run_to_end(orchestrator, asked)
                for view in (pb.DEBATE_VIEW_FULL, pb.DEBATE_VIEW_SUMMARY):
                    await orchestrator.stub.GetDebate(
                        pb.GetDebateRequest(debate_id=debate, view=view), timeout=_WITHIN
                    )
            if holds.longest < longest_hold_allowed():
                return
            longest.append(holds.told()[:3])
    raise AssertionError(f"the loop was held for too long: {longest}")


@pytest.mark.parametrize("units", [("\n", "> ", "\t\n"), ("Position:\n", "Ready: yes\n", "<think>")])
async def test_no_answers_of_a_model_hold_the_loop(units: Sequence[str], tmp_path: Path) -> None:
    """Each agent writes nothing but a unit of its own, over and over."""
    gateway = ScriptedGateway()
    gateway.critic = lambda step, agent: criticism(f"{agent} misses the cost at {step}.")
    longest: list[Sequence[str]] = []
    async with gateway.served() as server, orchestrating(tmp_path, server, over_sockets=True) as orchestrator:
        await _run_to_end(orchestrator, _PANEL)
        long = {
            each.id: unit * (200_000 // len(unit)) for each, unit in zip(gateway.agents, units, strict=False)
        }
        gateway.text = lambda step, agent: f"{long[agent]}\n{agent} answers {step}."
        for _ in range(_TRIES):
            with loop_holds() as holds:
                await _run_to_end(orchestrator, _PANEL)
            if holds.longest < longest_hold_allowed():
                return
            longest.append(holds.told()[:3])
    raise AssertionError(f"the loop was held for too long: {longest}")


@_FORMATS
async def test_no_history_of_large_answers_holds_the_loop(
    begun: Callable[[], ScriptedGateway], spec: DebateSpec, tmp_path: Path
) -> None:
    gateway = begun()
    longest: list[Sequence[str]] = []
    async with gateway.served() as server, orchestrating(tmp_path, server, over_sockets=True) as orchestrator:
        await _run_to_end(orchestrator, spec)
        words = "Words of an answer. " * (_CHARACTERS // 20)
        gateway.text = lambda step, agent: f"{words}\n{agent} answers {step}."
        for _ in range(_TRIES):
            with loop_holds() as holds:
                await _run_to_end(orchestrator, spec)
            if holds.longest < longest_hold_allowed():
                return
            longest.append(holds.told()[:3])
    raise AssertionError(f"the loop was held for too long: {longest}")


async def _run_to_end(orchestrator: Orchestrator, spec: DebateSpec) -> str:
    request = pb.CreateDebateRequest(request_id=uuid.uuid4().hex, spec=spec)
    debate = (await orchestrator.stub.CreateDebate(request, timeout=_WITHIN)).debate_id
    watched = pb.WatchDebateRequest(debate_id=debate)
    messages = [each async for each in orchestrator.stub.WatchDebate(watched, timeout=_WITHIN)]
    assert kind_of(events_of(messages)[-1]) == "closed"
    return debate
