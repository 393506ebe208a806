"""Debates of many long answers: they complete, and whoever reads them gets all of it."""

import asyncio
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message

from parley.client import ParleyClient
from parley.orchestrator.api import reading
from parley.orchestrator.peers import agents, fit_prompt
from parley.orchestrator.peers.fit_prompt import MAX_PROMPT_BYTES
from parley.runtime.message_limits import MAX_MESSAGE_BYTES
from parley.v1 import agent_pb2, debate_pb2, orchestrator_pb2
from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.moderated_pb2 import ModeratedSettings
from parley.v1.orchestrator_pb2_grpc import OrchestratorServiceStub
from parley.v1.panel_pb2 import PanelSettings
from tests.support.arena_debates import ArenaScript
from tests.support.command import Command
from tests.support.moderated_debates import ModeratedScript
from tests.support.orchestration import Orchestrator, events_of, failure_of, kind_of, orchestrating
from tests.support.scripted_answers import answer_text, judgement
from tests.support.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.timeout(
    600
)  # tens of megabytes go through four commands, on a machine that may be busy

_NAMES = ("ada", "bo", "cy", "dee", "eve")
_LONG = 200_000
_WITHIN = 120.0


def _filler(characters: int) -> str:
    return "It is so for reasons that take some room. " * (characters // 42)


def _panel(long: int) -> ScriptedGateway:
    gateway = ScriptedGateway()
    gateway.judge = lambda schema: judgement(schema, description=f"The answer. {_filler(long)}")
    return gateway


def _arena(_: int) -> ScriptedGateway:
    return ArenaScript().gateway()


def _make_moderated_gateway(long: int) -> ScriptedGateway:
    return ModeratedScript(debaters=4, characters=long // 3).gateway()


_FORMATS: dict[str, tuple[Callable[[int], ScriptedGateway], debate_pb2.DebateSpec]] = {
    "panel": (_panel, debate_pb2.DebateSpec(panel=PanelSettings(rounds=3))),
    "arena": (
        _arena,
        debate_pb2.DebateSpec(arena=ArenaSettings(revision_rounds=3, max_extended_rounds=0)),
    ),
    "moderated": (
        _make_moderated_gateway,
        debate_pb2.DebateSpec(moderated=ModeratedSettings(perspectives=4, max_rounds=3, checkpoints=False)),
    ),
}


@pytest.fixture(
    params=[16, pytest.param(1, marks=pytest.mark.long)], ids=["limits-of-a-sixteenth", "real-limits"]
)
def divisor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """By how much limits and texts are smaller than in use."""
    monkeypatch.setattr(reading, "MAX_MESSAGE_BYTES", MAX_MESSAGE_BYTES // request.param)
    for module in (agents, fit_prompt):
        monkeypatch.setattr(module, "MAX_PROMPT_BYTES", MAX_PROMPT_BYTES // request.param)
    return int(request.param)


@pytest.fixture(
    params=["panel", *(pytest.param(name, marks=pytest.mark.long) for name in ("arena", "moderated"))]
)
def format_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def gateway(format_name: str, divisor: int) -> ScriptedGateway:
    long = _LONG // divisor
    gateway = _FORMATS[format_name][0](long)
    team = [agent_pb2.Agent(id=name, name=name.title(), role="architect") for name in _NAMES]
    gateway.agents = (*team, agent_pb2.Agent(id="judge", name="Judge", role="judge"))
    gateway.text = lambda step, agent: f"{_filler(long)}\n{answer_text(step, agent)}"
    return gateway


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    yield
    Command.kill_all()


async def _hold_debate(orchestrator: Orchestrator, format_name: str) -> str:
    spec = debate_pb2.DebateSpec(
        question="Is water wet?",
        context=[debate_pb2.ContextDocument(path="a.md", text="Water is a liquid.")],
        history_limit=0,
    )
    spec.MergeFrom(_FORMATS[format_name][1])
    request = orchestrator_pb2.CreateDebateRequest(request_id=uuid.uuid4().hex, spec=spec)
    debate = (await orchestrator.stub.CreateDebate(request, timeout=_WITHIN)).debate_id
    watched = orchestrator_pb2.WatchDebateRequest(debate_id=debate)
    messages = [each async for each in orchestrator.stub.WatchDebate(watched, timeout=_WITHIN)]
    assert kind_of(events_of(messages)[-1]) == "closed"
    return debate


async def test_a_debate_of_long_answers_completes_and_is_read_in_every_way(
    orchestrator: Orchestrator, format_name: str, divisor: int, tmp_path: Path
) -> None:
    debate = await _hold_debate(orchestrator, format_name)
    stub = orchestrator.stub
    async with ParleyClient(orchestrator.server.address) as parley:
        summary = await parley.get_summary(debate)
        assert summary.status == debate_pb2.DEBATE_STATUS_COMPLETED
        assert [*summary.contributions, *summary.failures, summary.answer] == [""]
        assert [(each.path, each.text) for each in summary.spec.context] == [("a.md", "")]
        assert summary.ByteSize() < 100_000
        answer = await parley.get_answer(debate)
        made = [each async for each in parley.list_contributions(debate)]
        report = await parley.get_report(debate)
        whole = await parley.get(debate)
    contributions = [each for each in made if isinstance(each, debate_pb2.Contribution)]
    assert list(whole.contributions) == contributions
    assert list(whole.failures) == [each for each in made if isinstance(each, debate_pb2.FailedContribution)]
    assert {each.work.activity for each in whole.failures} <= {"convergence"}, "it is not there"
    assert (whole.answer, whole.outcome) == (answer.markdown, answer.outcome)
    assert [each.text for each in whole.spec.context] == ["Water is a liquid."]
    assert sum(len(each.reply.text) for each in contributions) > 2_000_000 // divisor
    assert len(report) > 1_500_000 // divisor
    if format_name == "panel":
        limit = MAX_MESSAGE_BYTES // divisor
        assert whole.ByteSize() > limit
        with pytest.MonkeyPatch.context() as patch:
            measured_in = _note_threads(patch)
            await _is_refused_whole(stub, debate, limit)
        assert measured_in
        assert threading.get_ident() not in measured_in, (
            "other callers wait while the loop measures megabytes"
        )
    for arguments in (["show", debate], ["show", debate, "--json"], ["report", debate], ["watch", debate]):
        at = [*arguments, "--server", orchestrator.server.address]
        ended = await asyncio.to_thread(Command(at, tmp_path).end)
        assert (ended.code, ended.err) == (0, []), arguments
        assert len(ended.out) > 200


def _note_threads(patch: pytest.MonkeyPatch) -> set[int]:
    """Return the threads in which messages of debates are measured from now on."""
    seen, check_size = set[int](), reading.check_size

    def note(message: Message, debate: str, otherwise: str) -> None:
        seen.add(threading.get_ident())
        check_size(message, debate, otherwise)

    patch.setattr(reading, "check_size", note)
    return seen


async def _is_refused_whole(stub: OrchestratorServiceStub, debate: str, limit: int) -> None:
    get = orchestrator_pb2.GetDebateRequest(debate_id=debate, view=orchestrator_pb2.DEBATE_VIEW_FULL)
    refused = await failure_of(stub.GetDebate(get, timeout=_WITHIN))
    assert (refused.code, refused.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "DEBATE_TOO_LARGE")
    assert "ask for the view SUMMARY, GetAnswer and ListContributions" in refused.message
    report = orchestrator_pb2.GetReportRequest(debate_id=debate)
    refused = await failure_of(stub.GetReport(report, timeout=_WITHIN))
    assert (refused.reason, refused.metadata["max_bytes"]) == ("DEBATE_TOO_LARGE", str(limit))
    assert "StreamReport" in refused.message


async def test_a_prompt_that_is_larger_than_a_message_is_fitted_and_says_so(
    tmp_path: Path, divisor: int
) -> None:
    gateway = ScriptedGateway()
    gateway.contexts = {"p/m": 100_000_000}
    gateway.text = lambda step, agent: f"{'水' * (260_000 // divisor)}\n{answer_text(step, agent)}"
    async with (
        gateway.served() as server,
        orchestrating(tmp_path, server, over_sockets=True) as orchestrator,
        ParleyClient(orchestrator.server.address) as parley,
    ):
        debate = await orchestrator.create(rounds=2, include_full_history=True)
        watched = orchestrator_pb2.WatchDebateRequest(debate_id=debate)
        assert [each async for each in orchestrator.stub.WatchDebate(watched, timeout=_WITHIN)]
        answers = [each async for each in parley.list_contributions(debate)]
        assert (await parley.get_summary(debate)).status == debate_pb2.DEBATE_STATUS_COMPLETED
    judged = gateway.asked("synthesis")
    told = sum(len(part.text.encode()) for part in judged.parts)
    assert 7_000_000 // divisor < told <= MAX_PROMPT_BYTES // divisor
    (answer,) = [each for each in answers if isinstance(each, debate_pb2.Contribution) and each.is_answer]
    marks = re.findall(r"\[… (\d+) characters left out …\]", judged.prompt)
    assert answer.reply.prompt_characters_left_out == sum(map(int, marks)) > 1_000_000 // divisor
