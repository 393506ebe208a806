"""The documents of a debate are sources: numbered in prompts, and listed in its log once."""

import hashlib
from pathlib import Path

from parley.orchestrator.log.debate_record import COMPLETED
from parley.v1.debate_pb2 import ContextDocument
from parley.v1.event_pb2 import SourcesListed
from parley.v1.memory_pb2 import Evidence
from parley.v1.orchestrator_pb2 import GetReportRequest
from parley.v1.source_pb2 import SOURCE_KIND_DOCUMENT
from tests.support.debate_logs import run_debate
from tests.support.orchestration import Orchestrator, backstage, make_debate
from tests.support.scripted_answers import judgement
from tests.support.scripted_gateway import ScriptedGateway

DOCUMENTS = (
    ContextDocument(path="otters.md", text="Otters float."),
    ContextDocument(path="dams.md", text="Dämme halten."),
)


async def test_documents_are_listed_as_sources_with_number_hash_and_time(tmp_path: Path) -> None:
    async with backstage(tmp_path, ScriptedGateway()) as stage, stage.replica() as replica:
        debate = await replica.create(make_debate(context=DOCUMENTS))
        await stage.comes_to(debate, COMPLETED)
        first, *events = await stage.events(debate)
    (listed,) = [each.payload for each in events if isinstance(each.payload, SourcesListed)]
    for number, (source, document) in enumerate(zip(listed.sources, DOCUMENTS, strict=True), 1):
        assert (source.number, source.kind, source.path) == (number, SOURCE_KIND_DOCUMENT, document.path)
        assert source.sha256 == hashlib.sha256(document.text.encode()).hexdigest()
        assert source.read_at.ToDatetime() == first.time.replace(tzinfo=None)


async def test_a_debate_without_documents_lists_no_sources(tmp_path: Path) -> None:
    async with backstage(tmp_path, ScriptedGateway()) as stage, stage.replica() as replica:
        debate = await replica.create(make_debate())
        await stage.comes_to(debate, COMPLETED)
        assert "sources_listed" not in await stage.kinds(debate)


async def test_every_prompt_shows_a_document_under_its_number(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    await run_debate(tmp_path, gateway, make_debate(context=DOCUMENTS))
    shown = [[(part.source, part.document) for part in call.parts if part.document] for call in gateway.calls]
    numbered = [each for each in shown if each]
    assert len(numbered) > 3
    assert all(each == [(1, "otters.md"), (2, "dams.md")] for each in numbered)


async def test_a_debate_says_who_cited_which_source(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.text = lambda step, agent: (
        f"{agent} says [S{'1' if agent == 'ada' else '2, S7'}].\nPosition: {step}"
    )
    debate = await orchestrator.create(context=DOCUMENTS)
    await orchestrator.watch(debate)
    found = await orchestrator.get(debate)
    cited = {(each.agent_id, each.source) for each in found.source_uses if each.round == 1}
    assert {("ada", 1), ("bo", 2), ("bo", 7)} <= cited
    assert ("ada", 2) not in cited
    assert {each.contribution for each in found.source_uses} <= {each.key for each in found.contributions}
    report = await orchestrator.stub.GetReport(GetReportRequest(debate_id=debate), timeout=10)
    assert "There is no source S7." in report.markdown


async def test_memory_keeps_the_place_of_a_source_since_its_number_means_nothing_later(
    tmp_path: Path,
) -> None:
    gateway = ScriptedGateway()
    gateway.judge = lambda schema: judgement(schema, description="Build it. It will hold the water [S2].")
    await run_debate(tmp_path, gateway, make_debate(context=DOCUMENTS))
    (kept,) = gateway.remembered
    assert kept.debate.conclusion == "Build it. It will hold the water (dams.md)."
    assert list(kept.debate.evidence) == [
        Evidence(text="It will hold the water (dams.md).", source="dams.md")
    ]
