"""What a call has used is told whether it was answered or not, and whether its endpoint said so or not."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from parley.gateway.prompt.sanitizer import MAX_CHARACTERS
from parley.gateway.routing.call import Timeouts
from tests.integration.gateway.harness import Gateway, failure_of, request, routes_file, run_gateway
from tests.support.model_server import Fault, FaultKind, ModelServer, Rule, error

PRICED = "    input_price: 100\n    output_price: 1000\n"
ONCE = Timeouts(route_attempt_seconds=5.0, first_pause_seconds=60)
QUESTION = "Is the river wide? " * 100


@asynccontextmanager
async def run_asked(
    folder: Path, server: ModelServer, *, extra: str = PRICED, **more: Any
) -> AsyncIterator[Gateway]:
    settings = routes_file(folder, server, extra=extra, **more)
    async with run_gateway(settings, environment={"KEY_1": "k"}, timeouts=ONCE) as gateway:
        yield gateway


@pytest.mark.parametrize(
    ("fault", "more", "said"),
    [
        (Fault(FaultKind.DROP_MID_STREAM, after_chunks=20), {}, True),
        (Fault(FaultKind.STALL_MID_STREAM, after_chunks=20), {"idle_timeout_seconds": 0.3}, True),
        (Fault(FaultKind.HANG), {"first_token_timeout_seconds": 0.3}, False),
        (Fault(FaultKind.DROP_BEFORE_ANY_BYTE), {}, False),
    ],
    ids=["cut", "stalled", "silent", "hung up"],
)
async def test_an_attempt_that_breaks_off_counts_with_its_prompt_and_what_was_heard(
    fault: Fault, more: dict[str, Any], said: bool, tmp_path: Path
) -> None:
    async with (
        ModelServer(answer="word " * 60, rules=[Rule(fault=fault)]) as server,
        run_asked(tmp_path, server, **more) as gateway,
    ):
        metadata = (await failure_of(gateway, request(QUESTION, timeout=3))).metadata
    read, written = int(metadata["input_tokens"]), int(metadata["output_tokens"])
    assert metadata["requests"] == "1"
    assert read > 300
    assert (written > 0) is said
    assert int(metadata["cost_micros"]) == 100 * read + 1000 * written


async def test_an_answer_that_is_cut_at_the_limit_costs_what_was_read_of_it(tmp_path: Path) -> None:
    rules = [Rule(fault=Fault(FaultKind.HUGE_ANSWER, size=MAX_CHARACTERS + 50_000))]
    async with ModelServer(rules=rules) as server, run_asked(tmp_path, server) as gateway:
        answer = (await gateway.ask(request(QUESTION))).answer
    assert answer.truncated
    assert answer.usage.input_tokens > 300
    assert answer.usage.output_tokens >= MAX_CHARACTERS // 8
    assert answer.usage.cost_micros == 100 * answer.usage.input_tokens + 1000 * answer.usage.output_tokens


@pytest.mark.parametrize("structured", [False, True])
async def test_an_endpoint_that_says_nothing_of_usage_does_not_answer_for_free(
    structured: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.gateway.wire.chat.as_count", lambda _: 0)
    monkeypatch.setattr("parley.gateway.wire.responses.as_count", lambda _: 0)
    schema: dict[str, Any] = (
        {"schema": {"name": "x", "json_schema": '{"type": "object"}'}} if structured else {}
    )
    answer = json.dumps({"words": "word " * 60}) if structured else "word " * 60
    async with ModelServer(answer=answer) as server, run_asked(tmp_path, server) as gateway:
        usage = (await gateway.ask(request(QUESTION, **schema))).answer.usage
    assert usage.input_tokens > 300
    assert usage.output_tokens > 60
    assert usage.cost_micros == 100 * usage.input_tokens + 1000 * usage.output_tokens


async def test_a_request_that_was_refused_or_never_arrived_costs_nothing(tmp_path: Path) -> None:
    async with ModelServer(rules=[Rule(fault=error(429))]) as server, run_asked(tmp_path, server) as gateway:
        refused = (await failure_of(gateway, request(QUESTION, timeout=2))).metadata
    assert (refused["input_tokens"], refused["cost_micros"]) == ("0", "0")
    async with run_asked(tmp_path, server) as gateway:  # nobody listens there any more
        unreached = (await failure_of(gateway, request(QUESTION, timeout=2))).metadata
    assert (unreached["input_tokens"], unreached["cost_micros"]) == ("0", "0")


async def test_the_cost_of_a_failed_call_is_not_told_where_it_is_unknown(tmp_path: Path) -> None:
    rules = [Rule(fault=Fault(FaultKind.DROP_MID_STREAM, after_chunks=2))]
    async with ModelServer(rules=rules) as server, run_asked(tmp_path, server, extra="") as gateway:
        metadata = (await failure_of(gateway, request(QUESTION, timeout=2))).metadata
    assert int(metadata["input_tokens"]) > 300
    assert "cost_micros" not in metadata
