"""Documents that callers name by their digests: sent once, and asked for again if the gateway does not have them."""

import asyncio
import gc

import grpc
import pytest

from parley.runtime.held_texts import digest_of_text
from parley.v1.gateway_pb2 import PROMPT_ROLE_USER, GenerateRequest, PromptPart
from tests.integration.gateway.harness import failure_of, request, run_gateway, settings_for
from tests.support.model_server import Fault, FaultKind, Match, ModelServer, Rule

TEXT = "Otters float on their backs. " * 4000


def _asks(*documents: PromptPart, **fields: object) -> GenerateRequest:
    asked = request("What do otters do?", **fields)  # type: ignore[arg-type]
    asked.prompt.extend(documents)
    return asked


def _make_whole_part(text: str = TEXT, path: str = "otters.md") -> PromptPart:
    digest = digest_of_text(text.encode())
    return PromptPart(role=PROMPT_ROLE_USER, document=path, text=text, digest=digest)


def _make_named_part(text: str = TEXT, path: str = "otters.md") -> PromptPart:
    return PromptPart(role=PROMPT_ROLE_USER, document=path, digest=digest_of_text(text.encode()))


async def test_a_document_that_is_not_known_is_asked_for_and_then_known() -> None:
    async with ModelServer() as server, run_gateway(settings_for(server)) as gateway:
        refused = await failure_of(gateway, _asks(_make_named_part()))
        assert (refused.code, refused.reason) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            "DOCUMENTS_MISSING",
        )
        assert not server.ledger.calls
        await gateway.ask(_asks(_make_whole_part()))
        await gateway.ask(_asks(_make_named_part()))
        first, second = [call.prompt for call in server.ledger.calls if call.prompt]
    assert first == second
    assert TEXT in first


async def test_a_document_for_which_there_is_no_room_is_asked_for_again() -> None:
    async with (
        ModelServer() as server,
        run_gateway(settings_for(server, document_cache_bytes=150_000)) as gateway,
    ):
        await gateway.ask(_asks(_make_whole_part()))
        await gateway.ask(_asks(_make_named_part()))
        await gateway.ask(_asks(_make_whole_part(TEXT[::-1])))
        gc.collect()
        assert (await failure_of(gateway, _asks(_make_named_part()))).reason == "DOCUMENTS_MISSING"


async def test_a_document_in_use_is_known_though_there_is_no_room_for_it() -> None:
    hangs = Rule(match=Match(occurrence=1), fault=Fault(FaultKind.HANG))
    async with (
        ModelServer(rules=[hangs]) as server,
        run_gateway(settings_for(server, document_cache_bytes=0)) as gateway,
    ):
        waiting = asyncio.create_task(gateway.ask(_asks(_make_whole_part())))
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
        await gateway.ask(_asks(_make_named_part()))
        waiting.cancel()


async def test_a_call_is_the_same_whether_its_documents_are_sent_or_named() -> None:
    async with ModelServer() as server, run_gateway(settings_for(server)) as gateway:
        first = await gateway.ask(_asks(_make_whole_part(), step="one"))
        second = await gateway.ask(_asks(_make_named_part(), step="one"))
        assert second.answer.stored
        assert second.answer.text == first.answer.text
        other = await failure_of(gateway, _asks(_make_whole_part("seals"), step="one"))
        assert other.reason == "CALL_ID_REUSED"


@pytest.mark.parametrize("path", ["", "a.md"], ids=["of no document", "of another text"])
async def test_a_digest_of_no_document_or_of_another_text_is_refused(path: str) -> None:
    part = PromptPart(role=PROMPT_ROLE_USER, document=path, text="a", digest="0" * 32)
    async with ModelServer() as server, run_gateway(settings_for(server)) as gateway:
        refused = await failure_of(gateway, _asks(part))
    assert refused.reason == "INVALID_ARGUMENT"
    assert [each.field for each in refused.violations] == ["prompt[1].digest"]
