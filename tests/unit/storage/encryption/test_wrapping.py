"""Where the operator's keys come from: files, and a program."""

import asyncio
import base64
import sys
from pathlib import Path
from typing import Final

import pytest

from parley.runtime.errors import ConfigurationError
from parley.storage.encryption.wrapping import CommandKey, Wrapped, WrappingKeys, read_wrapping_keys
from parley.storage.ports import KeyMissingError, StoreDamagedError, StoreUnavailableError
from tests.support.encryption import create_keys, write_key
from tests.support.guides import find_blocks

_KEY: Final = bytes(range(32))
_WRAPPED: Final = Wrapped("command", _KEY)
_PROGRAM: Final = """
import base64, sys
verb, data = sys.argv[-1], base64.b64decode(sys.stdin.read())
flipped = bytes(each ^ 0x5A for each in data)
print(base64.b64encode(flipped).decode(), *sys.argv[1:-1] if verb == "wrap" else ())
"""
_AWS: Final = """#!/bin/sh
# `kms encrypt` turns base64 around, and `kms decrypt` back; both print what `--query` and `--output text` leave.
case "$2" in encrypt) text="$6" ;; decrypt) text="$4" ;; esac
printf '%s' "$text" | base64 --decode | rev | base64 --wrap 0
"""
"""What stands for the program of AWS in the guide's example."""


def program(folder: Path, text: str, *options: str, seconds: float = 20) -> CommandKey:
    file = folder / "program.py"
    file.write_text(text)
    return CommandKey([sys.executable, str(file), *options], seconds)


async def test_the_first_key_wraps_and_all_unwrap(tmp_path: Path) -> None:
    old, new = write_key(tmp_path / "old"), write_key(tmp_path / "new")
    wrapped = await read_wrapping_keys([str(old)], "", 1).wrap(_KEY, "a place")
    both = read_wrapping_keys([str(new), str(old)], "", 1)
    assert await both.unwrap(wrapped, "a place") == _KEY
    assert (await both.wrap(_KEY, "a place")).by != wrapped.by
    with pytest.raises(KeyMissingError, match=f"the key {wrapped.by}; name its file"):
        await read_wrapping_keys([str(new)], "", 1).unwrap(wrapped, "a place")


async def test_a_data_key_is_unwrapped_for_its_place_alone() -> None:
    keys = create_keys()
    with pytest.raises(StoreDamagedError, match="another place"):
        await keys.unwrap(await keys.wrap(_KEY, "a place"), "another place")


@pytest.mark.parametrize("content", [b"", b"short", b"A" * 43, base64.b64encode(bytes(31)), bytes(32)])
def test_a_file_of_anything_else_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"PARLEY_ENCRYPTION_KEYS: .*key must hold 32 random bytes"):
        read_wrapping_keys([str(file)], "", 1)
    with pytest.raises(ConfigurationError, match=r"none cannot be read: No such file"):
        read_wrapping_keys([str(tmp_path / "none")], "", 1)


async def test_a_program_wraps_and_unwraps(tmp_path: Path) -> None:
    key = program(tmp_path, _PROGRAM)
    wrapped = await key.wrap(_KEY, "")
    assert (wrapped.by, wrapped.data == _KEY) == ("command", False)
    assert await key.unwrap(wrapped, "") == _KEY


async def test_a_program_may_name_its_key(tmp_path: Path) -> None:
    key = program(tmp_path, _PROGRAM, "version-7")
    wrapped = await key.wrap(_KEY, "")
    assert wrapped.by == "command/version-7"
    assert await WrappingKeys((*create_keys().keys, key)).unwrap(wrapped, "") == _KEY
    with pytest.raises(KeyMissingError, match=r"PARLEY_ENCRYPTION_COMMAND: .* the key command/version-7"):
        await create_keys().unwrap(wrapped, "")


async def test_the_program_of_the_guide_wraps_and_unwraps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (script,) = [each for each in find_blocks("docs/guides/encryption.md") if each.text.startswith("#!")]
    for name, text in {"aws": _AWS, "kms-wrap": script.text}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    key, data_key = CommandKey([str(tmp_path / "kms-wrap")], 20), b"A data key has 32 bytes of text."
    wrapped = await key.wrap(data_key, "")
    assert wrapped.data == data_key[::-1]
    assert await key.unwrap(wrapped, "") == data_key


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "import sys; sys.exit('no such key\\nthe service is away')",
            "ended with code 1: the service is away",
        ),
        ("print('§')", "wrote no base64"),
        ("", "wrote no base64"),
        ("print('QUJD')", "wrote 3 bytes instead of 32"),
    ],
)
async def test_a_program_that_fails_is_named_with_its_reason(tmp_path: Path, text: str, why: str) -> None:
    key = program(tmp_path, text)
    with pytest.raises(StoreUnavailableError, match=f"PARLEY_ENCRYPTION_COMMAND: .* unwrap {why}"):
        await key.unwrap(_WRAPPED, "")


async def test_a_program_says_by_its_code_that_it_will_never_unwrap_a_data_key(tmp_path: Path) -> None:
    key = program(tmp_path, "import os, sys; sys.exit(os.EX_DATAERR)")
    with pytest.raises(StoreDamagedError, match=r"PARLEY_ENCRYPTION_COMMAND: .* unwrap ended with code 65"):
        await key.unwrap(_WRAPPED, "")
    with pytest.raises(StoreUnavailableError):
        await key.wrap(_KEY, "")


async def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    key = program(tmp_path, "import time; time.sleep(600)", seconds=0.3)
    async with asyncio.timeout(20):
        with pytest.raises(StoreUnavailableError, match=r"took more than 0\.3 s"):
            await key.unwrap(_WRAPPED, "")


async def test_what_a_program_has_started_is_ended_with_it(tmp_path: Path) -> None:
    script = tmp_path / "wrap"
    script.write_text("#!/bin/sh\nsleep 600\necho\n")  # it keeps the output of the shell
    script.chmod(0o700)
    async with asyncio.timeout(20):
        with pytest.raises(StoreUnavailableError, match=r"took more than 0\.3 s"):
            await CommandKey([str(script)], 0.3).unwrap(_WRAPPED, "")


async def test_a_program_in_python_takes_no_module_of_the_folder_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, _PROGRAM)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreUnavailableError, match="No module named program"):
        await CommandKey([sys.executable, "-m", "program"], 20).wrap(_KEY, "a place")


def test_a_program_comes_first_unless_the_list_says_where(tmp_path: Path) -> None:
    file = str(write_key(tmp_path / "key"))
    first = read_wrapping_keys([file], sys.executable, 1)
    assert [isinstance(each, CommandKey) for each in first.keys] == [True, False]
    last = read_wrapping_keys([file, "command"], sys.executable, 1)
    assert [isinstance(each, CommandKey) for each in last.keys] == [False, True]
    assert not read_wrapping_keys([], "", 1)


def test_a_program_that_is_not_there_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="PARLEY_ENCRYPTION_COMMAND: there is no program"):
        read_wrapping_keys([], str(tmp_path / "none"), 1)
    with pytest.raises(ConfigurationError, match="names `command`; say which"):
        read_wrapping_keys(["command"], "", 1)
