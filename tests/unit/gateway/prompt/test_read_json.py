import asyncio
import signal
import subprocess
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt import read_json
from parley.gateway.prompt.read_json import NotJson, mended, values_in

WANTED = {"a": "x", "n": [1, 2]}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "x", "n": [1, 2],}',
        "{'a': 'x', 'n': [1, 2]}",
        '{a: "x", n: [1, 2]}',
        '{"a": "x" "n": [1 2]}',
        '{"a": "x", // why\n "n": [1, 2]}',
        "{“a”: “x”, “n”: [1, 2]}",
        '{"a": "x", "n": [1, 2]',
        'Here:\n```json\n{"a": "x", "n": [1, 2,]}\n```\nBye.',
        'In {short}:\n```\n{"a": "x", "n": [1, 2,]}\n```',
    ],
)
async def test_what_is_nearly_json_is_mended(text: str) -> None:
    assert await mended(text) == WANTED


@pytest.mark.parametrize("text", ["", "I would rather not.", "[1, 2"])
async def test_a_text_without_an_object_is_not_mended(text: str) -> None:
    with pytest.raises(NotJson):
        await mended(text)


@pytest.mark.parametrize("unit", ['. .```json"a":"a":', '“{"a": "b"}", "\'b\': '])
async def test_a_text_that_takes_minutes_is_given_up_in_time_and_holds_nobody_up(unit: str) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    ticking = asyncio.create_task(tick())
    began = time.monotonic()
    with pytest.raises(NotJson):
        await mended('{"a": ["' + unit * 60_000, seconds=1.0)
    took = time.monotonic() - began
    ticking.cancel()
    assert took < 30
    assert ticks > 3


async def test_whoever_waits_for_mending_can_be_stopped_and_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, started = asyncio.create_subprocess_exec, asyncio.Queue[asyncio.subprocess.Process]()

    async def noted(*arguments: Any, **more: Any) -> asyncio.subprocess.Process:
        child = await start(*arguments, **more)
        started.put_nowait(child)
        return child

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    waiting = asyncio.create_task(mended('{"a": ["' + '. .```json"a":"a":' * 12_000))
    child = await started.get()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert child.returncode is not None


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"a": ', {}),
        ("{A:", {}),
        ('{"a": , "b": [1, }', {"b": [1]}),
        ('{"a": "", "b": ', {"a": "", "b": ""}),
    ],
)
async def test_nothing_is_made_up_where_a_value_is_missing(text: str, read: object) -> None:
    assert await mended(text) == read


def test_a_mender_whose_gateway_was_killed_ends_by_itself() -> None:
    hostile = '{"a": ["' + '. .```json"a":"a":' * 12_000
    command = [*read_json._MENDER, "1", "--indent", "0"]
    ended = subprocess.run(command, check=False, input=hostile.encode(), timeout=60)
    assert ended.returncode in {-signal.SIGKILL, -signal.SIGXCPU}


async def test_the_mender_sees_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    show = "import os, json; print(json.dumps(dict(os.environ)))"
    monkeypatch.setattr(read_json, "_MENDER", (read_json._MENDER[0], "-I", "-c", show))
    assert "OPENAI_API_KEY" not in await mended("{")


@given(st.text(alphabet='{}[]`json" :,1\n', max_size=80))
def test_any_text_yields_values_or_is_not_json(text: str) -> None:
    try:
        found: list[Any] = list(values_in(text))
    except NotJson:
        return
    assert found


@pytest.mark.parametrize("unit", ["```\n", "```json\n", "{", "\n", "```\n\n{", '{"a":', "`", " "])
def test_no_text_takes_long_to_look_through(unit: str) -> None:
    text = "```" + (unit * 262_144)[:262_144]
    began = time.process_time()
    with suppress(NotJson):
        list(values_in(text))
    assert time.process_time() - began < 3
