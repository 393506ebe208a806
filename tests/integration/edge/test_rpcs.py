"""The orchestrator's RPCs over HTTP: with JSON as `curl` sends it, as streams, and by gRPC-web."""

import base64
import struct
import uuid
from typing import Any

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.rpc import error_details_pb2

from parley.v1 import orchestrator_pb2
from tests.integration.edge.conftest import SERVICE, Edge, envelopes
from tests.support.orchestration import kind_of

_SERVICE_DESCRIPTOR = orchestrator_pb2.DESCRIPTOR.services_by_name["OrchestratorService"]


def info_of(answer: dict[str, Any]) -> error_details_pb2.ErrorInfo:
    """Return the ErrorInfo of an error as the Connect protocol writes it."""
    (value,) = [each["value"] for each in answer["details"] if each["type"] == "google.rpc.ErrorInfo"]
    return error_details_pb2.ErrorInfo.FromString(base64.b64decode(value + "=" * (-len(value) % 4)))


async def test_a_debate_is_created_and_read_with_json(edge: Edge) -> None:
    debate = await edge.run_debate()
    status, answer = await edge.post("GetDebate", {"debateId": debate})
    assert status == 200
    assert answer["debate"]["outcome"]["description"] == "The answer."
    assert answer["debate"]["status"] == "DEBATE_STATUS_COMPLETED"


async def test_the_header_idempotency_key_is_the_request_id(edge: Edge) -> None:
    key = uuid.uuid4().hex
    debate = await edge.create(Idempotency_Key=key)
    assert await edge.create(Idempotency_Key=key) == debate
    status, answer = await edge.post(
        "CreateDebate", {"spec": {"question": "Is fire hot?"}}, Idempotency_Key=key
    )
    assert (status, answer["code"], info_of(answer).reason) == (409, "already_exists", "REQUEST_ID_REUSED")


async def test_a_request_id_that_is_missing_is_refused_by_the_name_of_its_header(edge: Edge) -> None:
    status, answer = await edge.post("CreateDebate", {"spec": {"question": "Is water wet?"}})
    assert (status, answer["code"]) == (400, "invalid_argument")
    assert answer["message"].startswith("request_id: ")
    assert "the header Idempotency-Key" in answer["message"]


async def test_a_header_and_a_field_that_differ_are_refused(edge: Edge) -> None:
    body = {"requestId": "one", "spec": {"question": "Is water wet?"}}
    status, answer = await edge.post("CreateDebate", body, Idempotency_Key="other")
    assert (status, answer["code"]) == (400, "invalid_argument")
    assert "Idempotency-Key" in answer["message"]


async def test_what_is_wrong_with_the_json_of_a_message_is_said_in_one_line(edge: Edge) -> None:
    for settings in ({"rouns": 1}, {"rounds": "x"}):
        status, answer = await edge.post("CreateDebate", {"spec": {"question": "Why?", "panel": settings}})
        assert (status, answer["code"]) == (400, "invalid_argument")
        assert answer["message"].startswith("the body is not the JSON of this message: ")
        assert "\n" not in answer["message"]
        assert not answer["message"].endswith(".")


async def test_an_error_has_its_code_its_reason_and_what_to_do(edge: Edge) -> None:
    status, answer = await edge.post("GetDebate", {"debateId": "deb-20260101-000000-aaaaaaaa"})
    assert (status, answer["code"]) == (404, "not_found")
    assert info_of(answer).reason == "DEBATE_NOT_FOUND"
    status, answer = await edge.post("CreateDebate", {"requestId": "one", "spec": {"question": " "}})
    assert (status, answer["code"]) == (400, "invalid_argument")
    assert "question" in answer["message"]


@pytest.mark.parametrize("body", [b'{"debateId": ', b'{"debate": "deb-1"}', b"[]"])
async def test_what_is_no_request_is_refused_and_never_half_read(edge: Edge, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    async with edge.session.post(f"{edge.url}{SERVICE}/GetDebate", data=body, headers=headers) as answer:
        assert (answer.status, (await answer.json())["code"]) == (400, "invalid_argument")


async def test_a_watch_streams_every_event_and_says_how_it_ended(edge: Edge) -> None:
    debate = await edge.create()
    body = b'{"debateId": "%s"}' % debate.encode()
    headers = {"Content-Type": "application/connect+json"}
    async with edge.session.post(
        f"{edge.url}{SERVICE}/WatchDebate", data=struct.pack(">BI", 0, len(body)) + body, headers=headers
    ) as answer:
        *messages, (flags, end) = envelopes(await answer.read())
    events = [message["event"] for _, message in messages if "event" in message]
    kinds = [kind_of(each.event) for each in await edge.orchestrator.watch(debate) if each.HasField("event")]
    assert [int(each["sequence"]) for each in events] == list(range(1, len(kinds) + 1))
    assert (flags, end) == (2, {})


async def test_grpc_web_speaks_to_it(edge: Edge) -> None:
    debate = await edge.create()
    body = orchestrator_pb2.GetDebateRequest(debate_id=debate).SerializeToString()
    headers = {"Content-Type": "application/grpc-web+proto"}
    async with edge.session.post(
        f"{edge.url}{SERVICE}/GetDebate", data=struct.pack(">BI", 0, len(body)) + body, headers=headers
    ) as answer:
        content = await answer.read()
    (size,) = struct.unpack(">I", content[1:5])
    found = orchestrator_pb2.GetDebateResponse.FromString(content[5 : 5 + size])
    assert found.debate.id == debate
    assert b"grpc-status: 0" in content[5 + size :].replace(b"grpc-status:0", b"grpc-status: 0")


async def test_every_rpc_of_the_contract_is_there(edge: Edge) -> None:
    missing = [each.name for each in _SERVICE_DESCRIPTOR.methods if not await is_there(edge, each)]
    assert missing == []


async def is_there(edge: Edge, method: MethodDescriptor) -> bool:
    """Whether an empty request is understood, whatever it comes to."""
    kind = "application/connect+proto" if method.server_streaming else "application/proto"
    body = struct.pack(">BI", 0, 0) if method.server_streaming else b""
    async with edge.session.post(
        f"{edge.url}{SERVICE}/{method.name}", data=body, headers={"Content-Type": kind}
    ) as answer:
        return answer.status not in (404, 405, 415, 501) or "NOT_FOUND" in (await answer.text())


async def test_an_orchestrator_that_is_away_is_said_to_be_and_when_to_come_back(edge: Edge) -> None:
    await edge.orchestrator.server.drain()
    status, answer = await edge.post("ListDebates", {})
    assert (status, answer["code"]) == (503, "unavailable")
    async with (
        edge.session.get(f"{edge.url}/readyz") as ready,
        edge.session.get(f"{edge.url}/healthz") as alive,
    ):
        assert (ready.status, alive.status) == (503, 200)


async def test_grpc_itself_is_sent_to_the_orchestrator(edge: Edge) -> None:
    headers = {"Content-Type": "application/grpc"}
    async with edge.session.post(f"{edge.url}{SERVICE}/GetDebate", data=b"", headers=headers) as answer:
        assert answer.status == 415
        assert "orchestrator" in await answer.text()


async def test_a_body_that_is_not_said_to_be_json_is_refused_with_the_header_to_send(edge: Edge) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    async with edge.session.post(f"{edge.url}{SERVICE}/ListDebates", data=b"{}", headers=headers) as answer:
        assert answer.status == 415
        assert "Content-Type: application/json" in await answer.text()


async def test_an_rpc_that_is_not_there_is_said_to_be_none(edge: Edge) -> None:
    status, answer = await edge.post("ListDebate", {})
    assert (status, answer["code"]) == (404, "unimplemented")
    assert "no RPC /parley.v1.OrchestratorService/ListDebate;" in answer["message"]


async def test_the_deadline_of_a_call_counts_at_the_orchestrator(edge: Edge) -> None:
    debate = await edge.run_debate()
    status, answer = await edge.post("GetDebate", {"debateId": debate}, Connect_Timeout_Ms="0")
    assert (status, answer["code"]) == (504, "deadline_exceeded")


async def test_nothing_is_unpacked(edge: Edge) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    async with edge.session.post(f"{edge.url}{SERVICE}/GetDebate", data=b"x", headers=headers) as answer:
        assert answer.status == 415


async def test_a_request_is_as_large_as_its_rpc_allows(edge: Edge) -> None:
    large = "x" * (2 * 1024 * 1024)
    status, answer = await edge.post("GetDebate", {"debateId": large})
    assert (status, answer["code"]) == (429, "resource_exhausted")
    body = {"spec": {"question": "Is water wet?", "documents": [{"path": "a.txt", "content": large}]}}
    status, answer = await edge.post("EstimateDebate", body)
    assert answer.get("code") != "resource_exhausted"
