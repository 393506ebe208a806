"""What a checkpoint asks is put to the person behind the client, or said in the result if the client has no forms."""

import asyncio
from typing import Any

import pytest
from mcp.client import ClientRequestContext
from mcp.client.client import Client
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from parley.v1 import debate_pb2
from parley.v1.debate_pb2 import Answer, QuestionAnswer
from tests.integration.mcp.conftest import Connect, find_debate, structured
from tests.support.moderated_debates import ModeratedScript
from tests.support.orchestration import Orchestrator, until
from tests.support.scripted_gateway import ScriptedGateway

MODES = ["legacy", "auto"]
MODERATED = {"question": "Redis or PostgreSQL?", "format": "moderated", "ask": True}


class Person:
    """Who fills in the forms of a client, in the order in which they come."""

    def __init__(self, *answers: ElicitResult) -> None:
        self.asked: list[ElicitRequestFormParams] = []
        self._answers = list(answers)

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        return self._answers.pop(0)


async def wait_for_next(client: Client, debate: str, checkpoint: str) -> dict[str, Any]:
    """Return what the debate waits for after this checkpoint."""

    async def find_next() -> Any:
        found = structured(await client.call_tool("get_debate", {"debate_id": debate}))
        waiting = found["waiting"]
        return waiting if waiting and waiting["checkpoint"] != checkpoint else None

    waiting: dict[str, Any] = await until(find_next, "another checkpoint")
    return waiting


def accept(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


@pytest.fixture
def gateway() -> ScriptedGateway:
    return ModeratedScript(questions=["How many users?", "Which budget?"]).gateway()


@pytest.mark.parametrize("mode", MODES)
async def test_questions_and_checkpoints_are_forms_and_their_answers_reach_the_debate(
    stdio: Connect, orchestrator: Orchestrator, mode: str
) -> None:
    person = Person(
        accept(q1="A thousand.", q2="", enough=True),
        accept(decision="guide", text="Think of the cost."),
        accept(decision="end"),
        accept(decision="approve", text="Good."),
    )
    async with stdio(mode=mode, elicitation_callback=person.answer) as client:
        result = structured(await client.call_tool("debate", MODERATED))
    assert result["status"] == "completed"
    debate = await orchestrator.get(result["debate_id"])
    (clarified,) = debate.clarifications
    first = clarified.questions.questions[0]
    assert clarified.answer == Answer(
        answers=[QuestionAnswer(question_id=first.id, text="A thousand.")], enough=True
    )
    assert list(debate.outcome.moderated.guidance) == ["Think of the cost."]
    assert [(each.approved, each.text) for each in debate.approvals] == [(True, "Good.")]
    asked = person.asked
    assert all(debate.id in each.message for each in asked)
    assert asked[0].requested_schema["properties"]["q1"]["description"] == "How many users?"
    assert asked[1].requested_schema["properties"]["decision"]["enum"] == ["continue", "guide", "end"]
    assert asked[3].requested_schema["properties"]["decision"]["enum"] == ["approve", "refuse"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_who_does_not_answer_gets_what_is_waited_for(
    stdio: Connect, orchestrator: Orchestrator, mode: str, action: Any
) -> None:
    person = Person(ElicitResult(action=action))
    async with stdio(mode=mode, elicitation_callback=person.answer) as client:
        result = structured(await client.call_tool("debate", MODERATED))
    assert result["status"] == "waiting"
    assert [each["text"] for each in result["waiting"]["questions"]] == ["How many users?", "Which budget?"]
    assert (await orchestrator.get(result["debate_id"])).status == debate_pb2.DEBATE_STATUS_WAITING


async def test_a_client_without_forms_is_told_how_to_answer_and_does(
    stdio: Connect, orchestrator: Orchestrator
) -> None:
    async with stdio() as client:
        waits = structured(await client.call_tool("debate", MODERATED))
        debate, waiting = waits["debate_id"], waits["waiting"]
        assert (waits["status"], waiting["kind"]) == ("waiting", "questions")
        assert "steer_debate" in waiting["how_to_answer"]
        for action, said in (
            ("answer", {"answers": {waiting["questions"][0]["id"]: "A thousand."}}),
            ("end", {}),
            ("refuse", {"text": "Cheaper."}),
            ("approve", {}),
        ):
            act = {"debate_id": debate, "action": action, "checkpoint": waiting["checkpoint"], **said}
            steered = structured(await client.call_tool("steer_debate", act))
            assert steered["action"] == action
            if action != "approve":
                waiting = await wait_for_next(client, debate, waiting["checkpoint"])
        await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)
        late = await client.call_tool("steer_debate", {"debate_id": debate, "action": "approve"})
    assert late.is_error
    assert [each.approved for each in (await orchestrator.get(debate)).approvals] == [False, True]


async def test_another_person_who_is_first_counts_and_the_call_goes_on(
    stdio: Connect, orchestrator: Orchestrator
) -> None:
    """The person behind the client answers after the checkpoint was closed by another one."""
    said = asyncio.Event()

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        if not said.is_set():
            said.set()
            debate = await find_debate(orchestrator)
            waiting = (await orchestrator.get(debate)).waiting
            await orchestrator.intervene(debate, checkpoint=waiting.checkpoint, answer={"text": "Ten users."})
            return accept(q1="A thousand.")
        return accept(decision="approve" if "approve" in str(params) else "end")

    async with stdio(mode="legacy", elicitation_callback=answer) as client:
        result = structured(await client.call_tool("debate", MODERATED))
    assert result["status"] == "completed"
    (clarified,) = (await orchestrator.get(result["debate_id"])).clarifications
    assert clarified.answer.text == "Ten users."


async def test_no_person_is_asked_unless_the_call_says_so(stdio: Connect) -> None:
    person = Person()
    plain = {name: value for name, value in MODERATED.items() if name != "ask"}
    async with stdio(elicitation_callback=person.answer) as client:
        result = structured(await client.call_tool("debate", plain))
    assert (result["status"], person.asked) == ("completed", [])
    assert result["decision"] == f"parley://debates/{result['debate_id']}/decision"
