"""The operator's keys, which wrap data keys: files, or a program that asks a key service. The first one wraps, all unwrap."""

import asyncio
import base64
import binascii
import hashlib
import os
import shlex
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from parley.runtime.errors import ConfigurationError
from parley.runtime.python_process import safe_environment
from parley.storage.encryption.sealed import KEY_BYTES, DataKey
from parley.storage.ports import KeyMissingError, StoreDamagedError, StoreUnavailableError

COMMAND: Final = "command"
"""The word of PARLEY_ENCRYPTION_KEYS for the program, and the beginning of the ids of its keys."""
_MAX_RUNS: Final = 4
"""Runs of the program at a time."""
_MAX_KEYS: Final = 16
_MAX_WRAPPED: Final = 16 * 1024
_MAX_SHOWN: Final = 200
_NAMESPACE: Final = b"parley wrapping key"


class Wrapped(Struct, frozen=True):
    """A data key as it is stored.

    Attributes:
        by: Id of the key that wraps it.
    """

    by: str
    data: bytes


class FileKey:
    """A key of 256 bits that the operator has put into a file. Its id is a digest of it, so that no name can be wrong."""

    def __init__(self, key: bytes) -> None:
        digest = hashlib.sha256(_NAMESPACE + key).digest()
        self.id = digest[:8].hex()
        self._key = DataKey(digest[:8], key)

    @classmethod
    def read(cls, path: Path) -> "FileKey":
        """Read a file of 32 bytes in base64. Raise ConfigurationError."""
        try:
            key = base64.b64decode(path.read_bytes().strip(), validate=True)
        except OSError as error:
            raise ConfigurationError(
                f"PARLEY_ENCRYPTION_KEYS: {path} cannot be read: {error.strerror or error}"
            ) from None
        except binascii.Error:
            key = b""
        if len(key) != KEY_BYTES:
            raise ConfigurationError(
                f"PARLEY_ENCRYPTION_KEYS: {path} must hold 32 random bytes in base64, as of `openssl rand -base64 32`"
            )
        return cls(key)

    def has(self, wrapped_by: str) -> bool:
        """Return whether it unwraps what the key with an id wrapped."""
        return wrapped_by == self.id

    async def wrap(self, data_key: bytes, place: str) -> Wrapped:
        """Wrap a data key for its place."""
        return Wrapped(self.id, self._key.seal(data_key, place))

    async def unwrap(self, wrapped: Wrapped, place: str) -> bytes:
        """Return the data key. Raise StoreDamagedError."""
        return self._key.open(wrapped.data, place)


class CommandKey:
    """A key that a program has. It is run with `wrap` or `unwrap`, and has base64 at its input and output.

    After a wrapped key it may name, in a second word, the key that wraps: rotation wraps anew what another one wraps. With the code
    EX_DATAERR it says of one data key that it will never unwrap it.
    """

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command = tuple(command)
        self._seconds = seconds
        self._runs = asyncio.Semaphore(_MAX_RUNS)

    def has(self, wrapped_by: str) -> bool:
        """Return whether it unwraps what the key with an id wrapped."""
        return wrapped_by.partition("/")[0] == COMMAND

    async def wrap(self, data_key: bytes, _: str) -> Wrapped:
        """Wrap a data key. Raise StoreUnavailableError if the program fails."""
        words = await self._run("wrap", data_key)
        name = words[1].decode("ascii", "replace") if len(words) > 1 else ""
        return Wrapped(f"{COMMAND}/{name}" if name else COMMAND, self._decode("wrap", words))

    async def unwrap(self, wrapped: Wrapped, _: str) -> bytes:
        """Return the data key. Raise StoreUnavailableError if the program fails, StoreDamagedError if it refuses this data key."""
        key = self._decode("unwrap", await self._run("unwrap", wrapped.data))
        if len(key) != KEY_BYTES:
            raise self._create_error("unwrap", f"wrote {len(key)} bytes instead of {KEY_BYTES}")
        return key

    async def _run(self, verb: str, data: bytes) -> list[bytes]:
        async with self._runs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    verb,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env=safe_environment(),
                    start_new_session=True,
                )
            except OSError as error:
                raise self._create_error(verb, f"cannot be run: {error.strerror or error}") from None
            try:
                async with asyncio.timeout(self._seconds):
                    out, told = await _communicate(process, base64.b64encode(data) + b"\n")
            except TimeoutError:
                raise self._create_error(verb, f"took more than {self._seconds:g} s") from None
        if process.returncode:
            said = told.decode(errors="replace").strip().splitlines()
            why = f": {said[-1][:_MAX_SHOWN]}" if said else ""
            failure = self._create_error(verb, f"ended with code {process.returncode}{why}")
            if (verb, process.returncode) == ("unwrap", os.EX_DATAERR):
                raise StoreDamagedError(str(failure))
            raise failure
        return out.split()

    def _decode(self, verb: str, words: Sequence[bytes]) -> bytes:
        with suppress(binascii.Error, IndexError):
            data = base64.b64decode(words[0], validate=True)
            if 0 < len(data) <= _MAX_WRAPPED:
                return data
        raise self._create_error(verb, "wrote no base64")

    def _create_error(self, verb: str, why: str) -> StoreUnavailableError:
        return StoreUnavailableError(f"PARLEY_ENCRYPTION_COMMAND: {self._command[0]} {verb} {why}")


class WrappingKeys(Struct, frozen=True):
    """The keys that the settings name, the one that wraps first. Without any, nothing is encrypted."""

    keys: Sequence[FileKey | CommandKey] = ()

    def __bool__(self) -> bool:
        """Whether anything is encrypted."""
        return bool(self.keys)

    async def wrap(self, data_key: bytes, place: str) -> Wrapped:
        """Wrap a data key for its place by the first key."""
        return await self.keys[0].wrap(data_key, place)

    def require(self, wrapped_by: str) -> FileKey | CommandKey:
        """Return the key that unwraps what the key with an id wrapped. Raise KeyMissingError if the settings have none."""
        for key in self.keys:
            if key.has(wrapped_by):
                return key
        if wrapped_by.partition("/")[0] == COMMAND:
            raise KeyMissingError(
                f"PARLEY_ENCRYPTION_COMMAND: stored data is encrypted by the key {wrapped_by}; set the program that has it"
            )
        known = ", ".join(key.id for key in self.keys if isinstance(key, FileKey)) or "none"
        raise KeyMissingError(
            f"PARLEY_ENCRYPTION_KEYS: stored data is encrypted by the key {wrapped_by}; name its file (keys that are set: {known})"
        )

    async def unwrap(self, wrapped: Wrapped, place: str) -> bytes:
        """Return a data key.

        Raises:
            KeyMissingError: the settings do not have the key that wraps it.
            StoreDamagedError: it was changed.
            StoreUnavailableError: the program failed.
        """
        key = await self.require(wrapped.by).unwrap(wrapped, place)
        if len(key) != KEY_BYTES:
            raise StoreDamagedError(f"{place}: has {len(key)} bytes")
        return key


NO_KEYS: Final = WrappingKeys()


def read_wrapping_keys(sources: Sequence[str], command: str, seconds: float) -> WrappingKeys:
    """Return the keys of PARLEY_ENCRYPTION_KEYS (files, or the word `command`) and PARLEY_ENCRYPTION_COMMAND.

    A program that the list does not name comes first. Raise ConfigurationError.
    """
    if len(sources) > _MAX_KEYS:
        raise ConfigurationError(f"PARLEY_ENCRYPTION_KEYS: must be at most {_MAX_KEYS}")
    if command and COMMAND not in sources:
        sources = [COMMAND, *sources]
    return WrappingKeys(
        tuple(
            _create_command(command, seconds) if each == COMMAND else FileKey.read(Path(each))
            for each in sources
        )
    )


async def _communicate(process: asyncio.subprocess.Process, data: bytes) -> tuple[bytes, bytes]:
    """Return what a program writes. If that breaks off, end it and all that it has started, which may hold its output open."""
    try:
        return await process.communicate(data)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise


def _create_command(command: str, seconds: float) -> CommandKey:
    if not command:
        raise ConfigurationError(
            "PARLEY_ENCRYPTION_KEYS: names `command`; say which in PARLEY_ENCRYPTION_COMMAND"
        )
    words = shlex.split(command)
    if not words or shutil.which(words[0]) is None:
        raise ConfigurationError(
            f"PARLEY_ENCRYPTION_COMMAND: there is no program {words[0] if words else ''}; name one by its path"
        )
    return CommandKey(words, seconds)
