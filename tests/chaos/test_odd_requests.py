"""Whatever is sent to a service, it is answered, in time and in its own terms, and nothing of it stays.

The requests are the same every time: 20,000 by `make chaos`, 1,000 by `make test`. `PARLEY_TEST_ODD_SEED=n` sends others, and
`PARLEY_TEST_ODD_REQUESTS=n` so many.
"""

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator

import grpc
import pytest

from parley.client import DebateSpec, ParleyClient
from parley.runtime.channel import channel
from parley.runtime.errors import from_rpc_error
from parley.v1.debate_pb2 import Participant
from tests.chaos.odd_requests import METHODS, OddRequest, make_odd_request
from tests.e2e.harness import SERVICES, System, model_server, system
from tests.support.process_status import resident_bytes
from tests.support.right_requests import DEBATE

_SEED, _COUNT = "PARLEY_TEST_ODD_SEED", "PARLEY_TEST_ODD_REQUESTS"
_SAMPLE = 1000
_AT_ONCE = 16
_ANSWER_SECONDS = 25.0
_STREAM_SECONDS = 2.0
_ENDLESS = {"WatchDebate", "WatchRoutes"}
_GROWTH_BYTES = 100 * 1024 * 1024
_ANSWERS = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,  # of Generate, whose request names its time
    grpc.StatusCode.CANCELLED,  # of Generate, whose call a CancelCall among them names
}

pytestmark = pytest.mark.timeout(3600 if os.environ.get(_COUNT) else 180)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("odd")
    with model_server() as models, system(folder, models, {"PARLEY_EMBEDDING_FINE": "static"}) as running:
        for name in SERVICES:
            running.start(name)
        running.wait(*SERVICES)
        yield running


async def test_every_odd_request_is_answered_in_the_terms_of_the_contract(
    services: System, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get(_SEED) or 7)
    count = int(os.environ.get(_COUNT) or _SAMPLE)
    with capsys.disabled():
        sys.stdout.write(f"\nodd requests: {_SEED}={seed} {_COUNT}={count}\n")
    debate = await hold_debate(services)
    callers = {name: channel(address) for name, address in services.addresses.items()}
    codes: Counter[str] = Counter()
    wrong: list[str] = []
    begun = time.monotonic()

    async def send(numbers: Iterator[int]) -> None:
        for number in numbers:
            sent = make_odd_request(seed, number)
            told = await answer(callers[sent.service], sent, debate)
            codes[told.partition(" ")[0]] += 1
            if told.partition(" ")[0] not in {each.name for each in _ANSWERS}:
                wrong.append(f"{number}: {sent.path} ({sent.kind}): {told}")

    before: dict[str, int] = {}
    for part in (range(count // 2), range(count // 2, count)):  # the first half warms up
        before = {name: resident_bytes(services.pid(name)) for name in SERVICES}
        numbers = iter(part)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_AT_ONCE):
                tasks.create_task(send(numbers))
    for each in callers.values():
        await each.close()
    growth = {name: resident_bytes(services.pid(name)) - before[name] for name in SERVICES}
    with capsys.disabled():
        grown = ", ".join(f"{name} {size >> 20} MiB" for name, size in growth.items())
        sys.stdout.write(f"odd requests: {dict(codes)}, {time.monotonic() - begun:.0f} s, grown by {grown}\n")
    assert not wrong, f"{_SEED}={seed}: {len(wrong)} wrong\n" + "\n".join(wrong[:40])
    for name in SERVICES:
        log = (services.folder / f"{name}.log").read_text(errors="replace")
        place = log.find("Traceback")
        assert place < 0, f"{_SEED}={seed} {name}: {log[max(place - 500, 0) : place + 3000]}"
        assert growth[name] < _GROWTH_BYTES, f"{name} grew by {growth[name]} bytes"
    assert codes["OK"] > count / 20
    assert codes["INVALID_ARGUMENT"] > count / 5


def test_odd_requests_are_for_every_method_and_the_same_for_a_seed() -> None:
    sent = [make_odd_request(1, number) for number in range(len(METHODS) * 3)]
    assert {each.path for each in sent} == {
        f"/{method.containing_service.full_name}/{method.name}" for method in METHODS
    }
    assert sent == [make_odd_request(1, number) for number in range(len(METHODS) * 3)]
    assert sent != [make_odd_request(2, number) for number in range(len(METHODS) * 3)]


async def hold_debate(services: System) -> str:
    """The id of a debate that is over."""
    agents = [Participant(agent_id="architect"), Participant(agent_id="performance")]
    async with ParleyClient(services.addresses["orchestrator"]) as client:
        debate = await client.create_debate(DebateSpec(question="One service or several?", agents=agents))
        async for _ in client.watch(debate):
            pass
    return debate


async def answer(there: grpc.aio.Channel, sent: OddRequest, debate: str) -> str:
    """The status that a request came to, and what it says beside its code where it is not typed."""
    method = sent.method
    shape = f"{_name_kind(method.client_streaming)}_{_name_kind(method.server_streaming)}"
    call = getattr(there, shape)(sent.path)
    messages = [each.replace(DEBATE.encode(), debate.encode()) for each in sent.messages]
    endless = method.name in _ENDLESS
    try:
        async with asyncio.timeout(_STREAM_SECONDS if endless else _ANSWER_SECONDS):
            if method.client_streaming:
                await in_turn(call(), messages)
            elif method.server_streaming:
                async for _ in call(messages[0]):
                    pass
            else:
                await call(messages[0])
    except grpc.aio.AioRpcError as error:
        told = from_rpc_error(error)
        return told.code.name if told.reason else f"UNTYPED {told.code.name} {told.message}"
    except TimeoutError:
        return "OK" if endless else f"NO_ANSWER in {_ANSWER_SECONDS:g} s"
    return "OK"


async def in_turn(call: "grpc.aio.StreamStreamCall[bytes, bytes]", messages: list[bytes]) -> None:
    """Send each message after the answer to the one before: gRPC's client forgets a status that comes while it writes."""
    for each in messages:
        await call.write(each)
        await call.read()
    await call.done_writing()
    await call.read()


def _name_kind(streaming: bool) -> str:
    return "stream" if streaming else "unary"
