"""What an answer says of decisions that earlier debates made about the same matter, in every format."""

import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.model.times import describe_day
from parley.orchestrator.phases.past import PAST_FOR_AUTHORS
from parley.runtime.server import RunningServer
from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.debate_pb2 import DebateSpec
from parley.v1.effect_pb2 import DECISION_RELATION_OTHER_MATTER, DECISION_RELATION_REVERSES
from parley.v1.moderated_pb2 import ModeratedSettings
from parley.v1.orchestrator_pb2 import CreateDebateRequest, GetReportRequest
from tests.integration.orchestrator.around import TWO, Around, get_closed
from tests.support.arena_debates import ArenaScript
from tests.support.moderated_debates import ModeratedScript
from tests.support.orchestration import WITHIN, Orchestrator
from tests.support.scripted_gateway import ScriptedGateway

QUESTION = "Kafka or RabbitMQ, which one now?"
SETTINGS: dict[str, dict[str, Any]] = {
    "panel": {},
    "arena": {"arena": ArenaSettings(revision_rounds=1)},
    "moderated": {"moderated": ModeratedSettings(checkpoints=False)},
}


@pytest.fixture(params=SETTINGS)
def form(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def gateway(form: str) -> ScriptedGateway:
    if form == "arena":
        return ArenaScript().gateway()
    return ModeratedScript(decisions=("agreement",)).gateway() if form == "moderated" else ScriptedGateway()


async def decide_again(orchestrator: Orchestrator, form: str) -> str:
    spec = DebateSpec(question=QUESTION, agents=[] if form == "moderated" else TWO, **SETTINGS[form])
    request = CreateDebateRequest(request_id=uuid.uuid4().hex, spec=spec)
    return (await orchestrator.stub.CreateDebate(request, timeout=WITHIN)).debate_id


@pytest.fixture
async def orchestrator(gateway_server: RunningServer, tmp_path: Path) -> AsyncIterator[Orchestrator]:
    around = Around(tmp_path)
    async with around.all(), around.orchestrating(gateway_server) as served:
        yield served


def let_answers_say(gateway: ScriptedGateway, earlier_decisions: object) -> None:
    """Let whoever is asked how its answer stands to earlier decisions say this."""
    answer = gateway.judge

    def judge(schema: str) -> str:
        said = answer(schema)
        if "earlier_decisions" not in json.loads(schema)["properties"]:
            return said
        return json.dumps({**json.loads(said), "earlier_decisions": earlier_decisions})

    gateway.judge = judge


async def test_an_answer_says_which_earlier_decision_it_reverses_and_memory_keeps_that(
    orchestrator: Orchestrator, gateway: ScriptedGateway, form: str
) -> None:
    first = await get_closed(orchestrator, await decide_again(orchestrator, form))
    said = [
        {"number": 1, "relation": "reverses", "reason": "The load has fallen to a tenth."},
        {"number": 7, "relation": "confirms", "reason": "There is no such decision."},
        {"number": "1", "relation": "likes"},
    ]
    let_answers_say(gateway, said)
    second = await get_closed(orchestrator, await decide_again(orchestrator, form))
    (related,) = second.outcome.related
    assert (related.debate_id, related.relation) == (first.id, DECISION_RELATION_REVERSES)
    assert related.reason == "The load has fallen to a tenth."
    assert not [each for each in second.warnings if "earlier" in each]
    report = await orchestrator.stub.GetReport(GetReportRequest(debate_id=second.id), timeout=WITHIN)
    day = describe_day(related.decided_at)
    assert f"Reverses the decision of {day}" in report.markdown
    third = await get_closed(orchestrator, await decide_again(orchestrator, form))
    shown = [
        each.prompt
        for each in gateway.calls
        if each.debate == third.id and "Earlier decision 1" in each.prompt
    ]
    assert any(f"It reverses the decision of {day}: {related.decision}" in each for each in shown)


@pytest.mark.parametrize(
    "form",
    ["panel", *(pytest.param(each, marks=pytest.mark.long) for each in ("arena", "moderated"))],
    indirect=True,
)
async def test_that_an_earlier_decision_is_about_another_matter_is_kept_and_shown_but_not_to_later_debates(
    orchestrator: Orchestrator, gateway: ScriptedGateway, form: str
) -> None:
    first = await get_closed(orchestrator, await decide_again(orchestrator, form))
    let_answers_say(gateway, [{"number": 1, "relation": "other matter", "reason": "It is of another team."}])
    second = await get_closed(orchestrator, await decide_again(orchestrator, form))
    (related,) = second.outcome.related
    assert (related.debate_id, related.relation) == (first.id, DECISION_RELATION_OTHER_MATTER)
    assert not [each for each in second.warnings if "earlier" in each]
    report = await orchestrator.stub.GetReport(GetReportRequest(debate_id=second.id), timeout=WITHIN)
    assert (
        f"Is about another matter than the decision of {describe_day(related.decided_at)}" in report.markdown
    )
    third = await get_closed(orchestrator, await decide_again(orchestrator, form))
    prompts = [each.prompt for each in gateway.calls if each.debate == third.id]
    assert any("Earlier decision 2" in each for each in prompts)
    assert not any("another matter than" in each for each in prompts)


async def test_an_answer_that_says_nothing_of_an_earlier_decision_has_a_warning_and_no_made_up_word(
    orchestrator: Orchestrator, gateway: ScriptedGateway, form: str
) -> None:
    await get_closed(orchestrator, await decide_again(orchestrator, form))
    let_answers_say(gateway, "none")
    second = await get_closed(orchestrator, await decide_again(orchestrator, form))
    assert not second.outcome.related
    said = [each for each in second.warnings if each.endswith("stands to earlier decision 1")]
    assert len(said) == 1


async def test_a_debate_without_earlier_decisions_has_no_word_about_them(
    orchestrator: Orchestrator, gateway: ScriptedGateway, form: str
) -> None:
    alone = await get_closed(orchestrator, await decide_again(orchestrator, form))
    asked = [each.prompt + each.schema for each in gateway.calls if each.debate == alone.id]
    assert asked
    assert not [each for each in asked if "earlier" in each.lower() and "decision" in each.lower()]


async def test_who_writes_first_is_asked_what_of_an_earlier_decision_still_holds(
    orchestrator: Orchestrator, gateway: ScriptedGateway, form: str
) -> None:
    await get_closed(orchestrator, await decide_again(orchestrator, form))
    second = await decide_again(orchestrator, form)
    await get_closed(orchestrator, second)
    kind = "argue" if form == "moderated" else "propose"
    prompts = [
        each.parts[-1].text
        for each in gateway.calls
        if each.debate == second and each.step.startswith(f"round/1/{kind}/")
    ]
    assert prompts
    assert all(PAST_FOR_AUTHORS in each for each in prompts)
