import asyncio
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt import read_json
from parley.gateway.prompt.read_json import NotJson, find_values, repair
from tests.support.growth import check_growth

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
    assert await repair(text) == WANTED


@pytest.mark.parametrize("text", ["", "I would rather not.", "[1, 2"])
async def test_a_text_without_an_object_is_not_mended(text: str) -> None:
    with pytest.raises(NotJson):
        await repair(text)


_WORKS_WITHOUT_END = "while True: pass"
_WAITS_WITHOUT_END = "import threading; threading.Event().wait()"


def mend_by(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let a program mend in the place of the library, within the same limits: some texts take it minutes, a fast machine less."""
    (mends,) = [line for line in read_json._MEND.splitlines() if "json_repair" in line]
    *command, text = read_json._MENDER
    monkeypatch.setattr(read_json, "_MENDER", (*command, text.replace(mends, program)))


@pytest.mark.parametrize(("program", "seconds"), [(_WORKS_WITHOUT_END, 1.0), (_WAITS_WITHOUT_END, 0.1)])
async def test_a_text_that_takes_minutes_is_given_up_in_time_and_holds_nobody_up(
    program: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    mend_by(monkeypatch, program)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    ticking = asyncio.create_task(tick())
    with pytest.raises(NotJson):
        await repair("{", seconds=seconds)
    ticking.cancel()
    assert ticks > 3


async def test_whoever_waits_for_mending_can_be_stopped_and_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, started = asyncio.create_subprocess_exec, asyncio.Queue[asyncio.subprocess.Process]()

    async def start_and_note(*arguments: Any, **more: Any) -> asyncio.subprocess.Process:
        child = await start(*arguments, **more)
        started.put_nowait(child)
        return child

    mend_by(monkeypatch, _WAITS_WITHOUT_END)
    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_and_note)
    waiting = asyncio.create_task(repair("{"))
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
    assert await repair(text) == read


def test_a_mender_whose_gateway_was_killed_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    mend_by(monkeypatch, _WORKS_WITHOUT_END)
    command = [*read_json._MENDER, "1", "--indent", "0"]
    ended = subprocess.run(command, check=False, stdin=subprocess.DEVNULL)
    assert ended.returncode in {-signal.SIGKILL, -signal.SIGXCPU}


async def test_the_mender_sees_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    show = "import os, json; print(json.dumps(dict(os.environ)))"
    monkeypatch.setattr(read_json, "_MENDER", (read_json._MENDER[0], "-I", "-c", show))
    assert "OPENAI_API_KEY" not in await repair("{")


@given(st.text(alphabet='{}[]`json" :,1\n', max_size=80))
def test_any_text_yields_values_or_is_not_json(text: str) -> None:
    try:
        found: list[Any] = list(find_values(text))
    except NotJson:
        return
    assert found


@pytest.mark.parametrize("unit", ["```\n", "```json\n", "{", "\n", "```\n\n{", '{"a":', "`", " "])
def test_no_text_takes_long_to_look_through(unit: str) -> None:
    def look_through(length: int) -> None:
        with suppress(NotJson):
            list(find_values("```" + (unit * length)[:length]))

    check_growth(look_through, 262_144)


def test_the_mender_is_found_where_the_gateway_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without_packages = sys._base_executable  # type: ignore[attr-defined]
    monkeypatch.setattr(read_json, "_MENDER", (without_packages, *read_json._MENDER[1:]))
    assert subprocess.run([without_packages, "-I", "-c", "import json_repair"], check=False).returncode
    assert asyncio.run(repair("{'one': 1,}")) == {"one": 1}
