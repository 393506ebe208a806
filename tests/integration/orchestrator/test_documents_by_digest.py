"""Documents go to the gateway once, and again if it has lost them."""

import asyncio
from pathlib import Path

from parley.orchestrator.log.debate_record import COMPLETED
from parley.v1.debate_pb2 import ContextDocument
from tests.support.debate_logs import run_debate
from tests.support.orchestration import backstage, make_debate
from tests.support.scripted_gateway import ScriptedGateway

TEXT = "Otters float on their backs. " * 4000


async def test_large_documents_are_sent_once_for_all_calls_of_a_debate(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    await run_debate(tmp_path, gateway, make_debate(context=(ContextDocument(path="a.md", text=TEXT),)))
    assert gateway.sent == 1
    with_documents = [call for call in gateway.calls if any(part.document for part in call.parts)]
    assert len(with_documents) > 3
    assert all(TEXT in call.prompt for call in with_documents)


async def test_documents_that_the_gateway_has_lost_are_sent_again(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    hold = gateway.hold("round/1/propose/*")
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(make_debate(context=(ContextDocument(path="a.md", text=TEXT),)))
        await asyncio.wait_for(hold.reached.wait(), 30)
        await gateway.wait_for("round/1/propose/*", 2)
        gateway.documents.clear()
        hold.release()
        await stage.comes_to(debate, COMPLETED)
    assert gateway.sent == 2


async def test_small_documents_go_with_every_prompt(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    await run_debate(
        tmp_path, gateway, make_debate(context=(ContextDocument(path="a.md", text="Otters float."),))
    )
    assert (gateway.sent, gateway.missed) == (0, 0)
    assert any("Otters float." in call.prompt for call in gateway.calls)
