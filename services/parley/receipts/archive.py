"""A debate as files of an archive: its stored log, its answer, its receipt and the keys, and how to verify them with common tools.

Archives are ZIP files without compression: the same debate gives the same bytes on every machine, and nothing in one is larger than
it is.
"""

import errno
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

from parley.receipts.errors import VerificationError
from parley.receipts.log_file import frame, read_log_file
from parley.runtime.validation import DEBATE_ID
from parley.v1.event_pb2 import Event

LOG: Final = "log.pb"
"""The events that the receipt is about; of a debate without an answer, all."""
LOG_AFTER: Final = "log-after.pb"
ANSWER: Final = "answer.md"
RECEIPT: Final = "receipt.json"
KEYS: Final = "keys.json"
KEY: Final = "key.pem"
README: Final = "README.md"
MAX_BYTES: Final = 1024 * 1024 * 1024
"""Of an archive that is read."""
_MAX_FILES: Final = 100_000
_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The first that a ZIP file can have."""

VERIFY_SCRIPT: Final = r"""
sed 's/.*"payload":"\([^"]*\)".*/\1/' receipt.json | base64 -d > statement.json
sed 's/.*"sig":"\([^"]*\)".*/\1/' receipt.json | base64 -d > statement.sig
{ printf 'DSSEv1 28 application/vnd.in-toto+json %d ' "$(wc -c < statement.json)"; cat statement.json; } > signed
openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in signed -sigfile statement.sig

sed 's/.*"digest":{"sha256":"\([0-9a-f]*\)"},"name":"[^"]*\/log".*/\1  log.pb/' statement.json > sums
echo >> sums
sed 's/.*"digest":{"sha256":"\([0-9a-f]*\)"},"name":"[^"]*\/answer".*/\1  answer.md/' statement.json >> sums
echo >> sums
sha256sum --check --strict sums
""".strip()
"""Verifies an archive in its folder, with nothing of Parley."""

_FILES: Final = """# Debate {debate_id}

| file | is |
|---|---|
| `answer.md` | the answer, as it was written |
| `report.md`, `report.html` | the whole debate for people |
| `decision.md` | the decision document, of a moderated debate |
| `documents/` | the documents that the agents had |
| `events.jsonl` | the log for programs: an event a line, as JSON |
| `log.pb`, `log-after.pb` | the log as it is stored, up to the answer and after it: messages `ReadLogResponse` of Parley's contract |
| `receipt.json` | the receipt: a signed statement about `log.pb` and `answer.md` |
| `key.pem`, `keys.json` | the public key that signed, for openssl and as a JSON Web Key Set |

A file that this debate does not have is not here.
"""
_SIGNED: Final = """
## Verify it

Whoever made this archive may have made the key too. So get the key by another way, and compare it with `key.pem`. In this folder, with `openssl` 3
and `sha256sum`:

```sh
{script}
```

The first part ends with `Signature Verified Successfully`, the second says `OK` for both files. The report and the other files are made of the log,
and not signed. With Parley: `parley verify receipt.json --keys key.pem --log log.pb --answer answer.md`.
"""
_UNSIGNED: Final = """
## Not signed

There is no receipt: the debate had no answer yet, or the system had no key.
"""


class ArchivedDebate(Struct, frozen=True):
    """A debate of an archive that has a receipt. Nothing of it is verified.

    Attributes:
        keys: The content of the list of keys.
        entries: The stored bytes of all events.
    """

    debate_id: str
    receipt: bytes
    keys: bytes
    answer: bytes
    entries: Sequence[bytes]


class Archive(Struct, frozen=True):
    """What an archive has.

    Attributes:
        debates: Those with a receipt.
        unsigned: The ids of those without: nothing says whether anything of them is as it was.
    """

    debates: Sequence[ArchivedDebate]
    unsigned: Sequence[str]


def describe_archive(debate_id: str, *, is_signed: bool) -> str:
    """Return the README of a debate's folder."""
    signed = _SIGNED.format(script=VERIFY_SCRIPT)
    return _FILES.format(debate_id=debate_id) + (signed if is_signed else _UNSIGNED)


def split_log(entries: Sequence[bytes]) -> tuple[str | None, dict[str, bytes]]:
    """Return the answer of a log, None if it has none, and its files."""
    for place, entry in enumerate(entries, start=1):
        event = Event.FromString(entry)
        if event.concluded.HasField("outcome"):
            files = {LOG: b"".join(map(frame, entries[:place]))}
            after = b"".join(map(frame, entries[place:]))
            return event.concluded.outcome.description, files | ({LOG_AFTER: after} if after else {})
    return None, {LOG: b"".join(map(frame, entries))}


def document_name(number: int, path: str) -> str:
    """Return the name in an archive of a document: its path, if every program that unpacks it stays in its folder."""
    safe = path.isprintable() and not set(path) & set('\\:*?"<>|')
    parts = PurePosixPath(path).parts
    if not safe or not parts or ".." in parts or parts[0] == "/":
        return f"documents/document-{number}.txt"
    return str(PurePosixPath("documents", *parts))


def write_files(archive: zipfile.ZipFile, folder: str, files: Iterable[tuple[str, bytes]]) -> None:
    """Write files into a folder of an archive, without times, owners and compression."""
    for name, content in files:
        info = zipfile.ZipInfo(f"{folder}/{name}", _TIME)
        info.external_attr = 0o644 << 16
        info.create_system = 3  # Unix, whatever this machine is
        archive.writestr(info, content, zipfile.ZIP_STORED)


def read_archive(path: Path) -> Archive:
    """Return what an archive has. Nothing is unpacked.

    Raises:
        OSError: the file cannot be read.
        VerificationError: it is no archive of Parley, or larger than it may be; the message says why.
    """
    if path.stat().st_size > MAX_BYTES:
        raise VerificationError(f"it has more than {MAX_BYTES:,} bytes")
    try:
        with zipfile.ZipFile(path) as archive:
            names = _check_members(archive)
            if damaged := archive.testzip():
                raise VerificationError(f"{damaged!r:.80} in it is damaged")
            folders = sorted({each.partition("/")[0] for each in names})
            signed = [each for each in folders if f"{each}/{RECEIPT}" in names]
            unsigned = sorted({*folders}.difference(signed))
            return Archive([_read_debate(archive, each) for each in signed], unsigned)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, RuntimeError) as error:
        raise VerificationError(f"it is no archive that can be read: {error}") from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise VerificationError("it is no archive that can be read: a file begins outside of it") from None


def _check_members(archive: zipfile.ZipFile) -> set[str]:
    """Return the names of the files of an archive. Raise VerificationError for what Parley writes into none."""
    members = archive.infolist()
    if len(members) > _MAX_FILES:
        raise VerificationError(f"it has more than {_MAX_FILES:,} files")
    if sum(each.file_size for each in members) > MAX_BYTES:
        raise VerificationError(f"its files have more than {MAX_BYTES:,} bytes")
    names: set[str] = set()
    for each in members:
        if each.compress_type != zipfile.ZIP_STORED or each.compress_size != each.file_size:
            raise VerificationError(
                f"{each.filename!r:.80} is compressed, and nothing in an archive of Parley is"
            )
        folder, _, name = each.filename.partition("/")
        if not DEBATE_ID.fullmatch(folder) or not name or ".." in name.split("/"):
            raise VerificationError(f"{each.filename!r:.80} is in no folder of a debate")
        if each.comment or each.extra:  # a wrong length of them hides the files that are listed after it
            raise VerificationError(
                f"{each.filename!r:.80} has a comment, and nothing in an archive of Parley has one"
            )
        if each.filename in names:
            raise VerificationError(f"{each.filename!r:.80} is in it twice")
        names.add(each.filename)
    return names


def _read_debate(archive: zipfile.ZipFile, debate_id: str) -> ArchivedDebate:
    known = set(archive.namelist())

    def read(name: str, otherwise: bytes | None = None) -> bytes:
        full = f"{debate_id}/{name}"
        if full in known:
            return archive.read(full)
        if otherwise is None:
            raise VerificationError(f"{full} is missing")
        return otherwise

    log = read(LOG) + read(LOG_AFTER, b"")
    return ArchivedDebate(debate_id, read(RECEIPT), read(KEYS), read(ANSWER), read_log_file(log))
