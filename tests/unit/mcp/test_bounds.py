"""What models and people wrote comes back bounded and printable, whatever it is."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.client.client import Client
from mcp_types import CallToolResult

from parley.client import ParleyClient
from parley.mcp.asking import create_form
from parley.mcp.resources import DOCUMENT_CHARACTERS
from parley.mcp.results import ANSWER_CHARACTERS, cut_line, cut_text
from parley.mcp.server import create_server
from parley.v1.debate_pb2 import Question, Questions, Waiting
from tests.support.hostile_services import HostileServices, hostile_services
from tests.support.mcp_access import act_by
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator, scripted

UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)
HUGE = "Use a monolith. " * 100_000
RESULT_CHARACTERS = 60_000


@asynccontextmanager
async def connect(address: str) -> AsyncIterator[Client]:
    async with (
        ParleyClient(address, patience=0) as parley,
        Client(create_server(act_by(parley))) as client,
    ):
        yield client


def texts(value: Any) -> Iterator[str]:
    """All texts in a result."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


@pytest.fixture(scope="module")
def services() -> Iterator[HostileServices]:
    with hostile_services() as serving:
        yield serving


CALLS = [
    ("debate", {"question": "Which?"}),
    ("start_debate", {"question": "Which?"}),
    ("get_debate", {"debate_id": DEBATE_ID}),
    ("list_debates", {}),
    ("steer_debate", {"debate_id": DEBATE_ID, "action": "end"}),
    ("search_past_debates", {"text": "Kafka"}),
]


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("choice", range(4))
async def test_no_result_carries_escape_sequences_or_hidden_characters(
    services: HostileServices, choice: int, *, refuses: bool
) -> None:
    services.choice, services.refuses = choice, refuses
    async with connect(services.address) as client:
        for tool, arguments in CALLS:
            result: CallToolResult = await client.call_tool(tool, arguments)
            assert result.is_error == refuses, (tool, result)
            shown = [getattr(each, "text", "") for each in result.content]
            for text in (*shown, *texts(result.structured_content)):
                assert not UNSHOWN.search(text), (tool, text)


def conclude_hugely(debate: ScriptedDebate) -> None:
    debate.step("ada", "proposal", HUGE)
    debate.conclude(HUGE)


async def test_a_huge_answer_is_cut_and_the_result_says_by_how_much() -> None:
    with scripted(ScriptedOrchestrator(script=conclude_hugely)) as orchestrator:
        async with connect(orchestrator.address) as client:
            result = await client.call_tool("debate", {"question": "Which? " * 10_000})
    found = result.structured_content or {}
    assert found["answer"] == HUGE[:ANSWER_CHARACTERS]
    assert found["answer_characters_left_out"] >= len(HUGE) - ANSWER_CHARACTERS - 1
    assert len(json.dumps(found)) < RESULT_CHARACTERS


async def test_a_huge_report_is_cut_and_says_where_the_rest_is() -> None:
    orchestrator = ScriptedOrchestrator(script=conclude_hugely)
    orchestrator.report = HUGE
    with scripted(orchestrator):
        async with connect(orchestrator.address) as client:
            await client.call_tool("debate", {"question": "Which?"})
            (content,) = (await client.read_resource(f"parley://debates/{DEBATE_ID}/report")).contents
    text = getattr(content, "text", "")
    assert text.startswith(HUGE[:DOCUMENT_CHARACTERS])
    assert text.endswith("`parley report` has them.\n")
    assert len(text) < DOCUMENT_CHARACTERS + 100


def test_a_form_is_bounded_and_says_who_wrote_it() -> None:
    asked = [Question(id=str(number), text=HUGE[:20_000]) for number in range(100)]
    form = create_form(DEBATE_ID, Waiting(checkpoint="c", questions=Questions(text=HUGE, questions=asked)))
    assert form is not None
    assert form.message.startswith(f"Debate {DEBATE_ID} asks you. What follows was written by its agents.")
    assert len(form.message) + len(json.dumps(form.requested_schema)) < RESULT_CHARACTERS


def test_a_checkpoint_of_a_later_version_has_no_form() -> None:
    assert create_form(DEBATE_ID, Waiting(checkpoint="c", message="Which?")) is None


def test_a_text_within_its_bound_stays_as_it_is() -> None:
    assert cut_text("a\nb", 3) == "a\nb"
    assert cut_text("a\nbc", 3) == "a\n…"
    assert cut_line("a\n b") == "a b"
