"""Large JSON at the edge: it is read and written in a thread, and the event loop serves others meanwhile."""

import asyncio
import threading
from collections.abc import Awaitable
from types import ModuleType
from typing import Any

import pytest
from google.protobuf.message import Message

from parley.edge import event_texts, json_messages
from parley.v1 import debate_pb2
from parley.v1.orchestrator_pb2 import CreateDebateRequest
from tests.integration.edge.conftest import SERVICE, Edge
from tests.support.orchestration import WITHIN
from tests.support.scripted_gateway import ScriptedGateway

LARGE = {
    "spec": {
        "question": "Is water wet?",
        "panel": {"rounds": 1},
        "historyLimit": 0,
        "context": [{"path": "notes.md", "text": "Wet. " * 40_000}],
    }
}


async def create(edge: Edge) -> str:
    status, answer = await edge.post("CreateDebate", LARGE, Idempotency_Key="large")
    assert status == 200, answer
    await edge.orchestrator.status(answer["debateId"], debate_pb2.DEBATE_STATUS_COMPLETED)
    return str(answer["debateId"])


async def answers_others_during(
    work: Awaitable[Any], edge: Edge, module: ModuleType, function: str, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return what `work` comes to: `function`, on a large text, goes on once another request was answered."""
    original, begun, answered = getattr(module, function), asyncio.Event(), threading.Event()
    loop, seen = asyncio.get_running_loop(), []

    def wait_for_others(*given: Any, **named: Any) -> Any:
        size = given[0].ByteSize() if isinstance(given[0], Message) else len(given[0])
        if size > 100_000:
            loop.call_soon_threadsafe(begun.set)
            seen.append(answered.wait(WITHIN))
        return original(*given, **named)

    monkeypatch.setattr(module, function, wait_for_others)
    working = asyncio.ensure_future(work)
    await begun.wait()
    async with edge.session.get(f"{edge.url}/healthz") as other:
        assert other.status == 200
    answered.set()
    found = await working
    assert seen
    assert all(seen), "another request waited until the JSON was done"
    return found


async def test_others_are_answered_while_a_large_request_is_read(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = edge.post("EstimateDebate", LARGE)
    status, answer = await answers_others_during(work, edge, json_messages, "Parse", monkeypatch)
    assert status == 200
    assert answer["estimate"]


async def test_others_are_answered_while_a_large_answer_is_written(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = edge.post("GetDebate", {"debateId": await create(edge)})
    status, answer = await answers_others_during(work, edge, json_messages, "MessageToJson", monkeypatch)
    assert status == 200
    assert answer["debate"]["spec"]["context"] == LARGE["spec"]["context"]


async def test_others_are_answered_while_a_large_event_is_written(
    edge: Edge, gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.text = lambda *_: "Wet. " * 40_000
    debate = await create(edge)

    async def follow() -> str:
        async with edge.session.get(f"{edge.url}/v1/debates/{debate}/events") as stream:
            return await stream.text()

    followed = await answers_others_during(follow(), edge, event_texts, "_write", monkeypatch)
    assert "Wet. Wet." in followed
    assert followed.endswith("event: end\ndata: {}\n\n")


@pytest.mark.parametrize("body", [b'{"spec": {"questio": "%s"}}', b'{"spec": "%s"', b'"%s\xff"'])
async def test_a_large_body_that_is_no_request_is_refused_in_words(edge: Edge, body: bytes) -> None:
    url, headers = f"{edge.url}{SERVICE}/CreateDebate", {"Content-Type": "application/json"}
    async with edge.session.post(url, data=body.replace(b"%s", b"x" * 100_000), headers=headers) as answer:
        found = await answer.json()
    assert (answer.status, found["code"]) == (400, "invalid_argument")
    assert found["message"].startswith("the body is not the JSON of this message: ")


async def test_deep_nesting_is_refused(edge: Edge) -> None:
    url, headers = f"{edge.url}{SERVICE}/CreateDebate", {"Content-Type": "application/json"}
    async with edge.session.post(url, data=b"[" * 500_000, headers=headers) as answer:
        assert answer.status == 400


async def test_a_body_of_very_many_values_is_refused_before_it_is_read(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_anyway(*_: object) -> Message:
        raise AssertionError("it was read")

    monkeypatch.setattr(json_messages, "Parse", read_anyway)
    one = debate_pb2.DebateSpec(context=[debate_pb2.ContextDocument()])
    bodies = {
        "json": b'{"spec":{"context":[' + b"{}," * 400_000 + b"{}]}}",
        "proto": CreateDebateRequest(spec=one).SerializeToString() * 300_000,
    }
    for kind, body in bodies.items():
        url, headers = f"{edge.url}{SERVICE}/CreateDebate", {"Content-Type": f"application/{kind}"}
        async with edge.session.post(url, data=body, headers=headers) as answer:
            found = await answer.json()
        assert (answer.status, found["code"]) == (400, "invalid_argument")
        assert "20,000" in found["message"], "the orchestrator would say it in other words"


async def test_marks_within_a_text_are_no_values(edge: Edge) -> None:
    document = {"path": "notes.md", "text": '{"a": [1, 2], "b": "\\"}, ' * 60_000}
    status, answer = await edge.post("EstimateDebate", {"spec": {**LARGE["spec"], "context": [document]}})
    assert status == 200, answer
