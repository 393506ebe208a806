"""Large documents: of what does not fit a prompt, the passages nearest to the question are kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parley.gateway.prompt.fitting import fit
from parley.orchestrator.log.debate_record import COMPLETED
from parley.v1.debate_pb2 import ContextDocument
from parley.v1.event_pb2 import DebateCreated, Warned
from parley.v1.gateway_pb2 import PromptPart
from tests.support.debate_logs import run_debate
from tests.support.every_format import in_every_format
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import backstage, make_debate, make_limits, with_spec
from tests.support.prompt_parts import quote_documents
from tests.support.scripted_faults import refusal
from tests.support.scripted_gateway import ScriptedGateway

QUESTION = "How do otters sleep?"
SLEEP = "Otters hold hands while they sleep."
FILLING = "The dam was built of stone, and the stone was brought by boat.\n\n" * 1_600
LARGE = ContextDocument(path="docs/large.md", text=f"{FILLING}{SLEEP}\n\n{FILLING}")
SMALL = ContextDocument(path="docs/small.md", text="Dams hold.")


def nearness(text: str) -> Sequence[float]:
    return [1.0, 0.0] if "sleep" in text else [0.0, 1.0]


def make_debate_with_documents(**fields: Any) -> DebateCreated:
    return make_debate(question=QUESTION, context=[SMALL, LARGE], **fields)


def large_part(parts: Sequence[PromptPart]) -> PromptPart:
    (found,) = [each for each in parts if each.document == LARGE.path]
    return found


def warnings_of(events: Sequence[Any]) -> list[str]:
    return [each.payload.message for each in events if isinstance(each.payload, Warned)]


@in_every_format()
async def test_a_prompt_that_is_too_long_keeps_what_is_nearest_to_the_question(
    tmp_path: Path, gateway: ScriptedGateway, fields: dict[str, Any]
) -> None:
    gateway.embed = nearness
    await run_debate(tmp_path, gateway, make_debate_with_documents(**fields))
    shown = [each for each in gateway.calls if any(part.document == LARGE.path for part in each.parts)]
    assert len({each.agent.id for each in shown}) > 1
    for call in shown:
        nearest = large_part(call.parts).passages[0]
        assert SLEEP in LARGE.text[nearest.start : nearest.end]
        assert not [part for part in call.parts if part.passages and part.document != LARGE.path]
        told, _ = fit(quote_documents(call.parts), 8_000)
        assert SLEEP in "".join(each.text for each in told)


async def test_without_convergence_the_debate_goes_on_with_a_warning(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    gateway.embed = None
    events = await run_debate(tmp_path, gateway, make_debate_with_documents())
    assert not [part for call in gateway.calls for part in call.parts if part.passages]
    (warning,) = [each for each in warnings_of(events) if "large documents" in each]
    assert warning.startswith("prompts that are too long keep the beginning and the end of large documents: ")


async def test_small_documents_are_not_cut(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    await run_debate(tmp_path, gateway, make_debate(context=[SMALL]))
    assert gateway.embedded == 0


async def test_what_was_chosen_is_recorded_and_not_chosen_anew(tmp_path: Path) -> None:
    gateway, clock = ScriptedGateway(), ManualClock()
    gateway.embed = nearness
    gateway.fail("synthesis", refusal("PROVIDER_RATE_LIMIT", "too fast"), times=1)
    async with backstage(tmp_path, gateway) as stage, stage.replica(clock=clock) as replica:
        debate = await replica.create(make_debate_with_documents(limits=make_limits(waiting=60)))
        await stage.has(debate, "wait_started")
        asked = gateway.embedded
        gateway.embed = None
        clock.advance(5)
        await stage.comes_to(debate, COMPLETED)
    assert gateway.embedded == asked > 0
    first, again = [large_part(each.parts).passages for each in gateway.calls if each.step == "synthesis"]
    assert first == again


async def test_another_replica_shows_what_the_first_one_chose(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    gateway.embed = nearness
    waiting = gateway.hold("*propose*")
    async with backstage(tmp_path, gateway) as stage:
        async with stage.replica("one") as one:
            debate = await one.create(make_debate_with_documents())
            await waiting.reached.wait()
        gateway.embed = None
        waiting.release()
        async with stage.replica("two"):
            await stage.comes_to(debate, COMPLETED)
    drafts = [large_part(each.parts).passages for each in gateway.calls if "propose" in each.step]
    assert len(drafts[0])
    assert len({str(each) for each in drafts}) == 1


async def test_what_follows_the_answer_is_asked_with_the_same_passages(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    gateway.embed = nearness
    await run_debate(tmp_path, gateway, with_spec(make_debate_with_documents(), analysis=True))
    before, after = [
        large_part(gateway.asked(step).parts).passages for step in ("synthesis", "after/grounding")
    ]
    assert before == after
    assert len(after)
