"""The commands that print and verify receipts, and keep debates that have one."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import grpc
from msgspec import Struct

from parley.cli.commands.connection import connect_orchestrator, find_debate_id
from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.printing import print_line, print_text, say
from parley.cli.terminal.files import check_output_path, write_file
from parley.cli.terminal.words import SHORT_WIDTH, to_line
from parley.client import ParleyClient, ParleyError
from parley.receipts.archive import ANSWER, KEYS, LOG, RECEIPT, Archive, ArchivedDebate, read_archive
from parley.receipts.errors import KeyFileError, UnknownKeyError, VerificationError
from parley.receipts.keys import read_keys
from parley.receipts.log_file import frame, read_log_file
from parley.receipts.verification import VerifiedReceipt, verify_answer, verify_log, verify_receipt
from parley.runtime.printable import printable
from parley.v1.receipt_pb2 import ReceiptKey

_ZIP = b"PK"
"""What an archive begins with."""
_ELSEWHERE = "; --server HOST:PORT asks the Parley that signed it, --keys FILE trusts keys of a file"
_MACHINE_ONLY = "a system on one machine made this key for itself: the receipt vouches for that machine alone"


class Evidence(Struct, frozen=True):
    """The files of a verification; None: what Parley has. With `keys`, Parley is not asked."""

    file: Path
    log: Path | None = None
    answer: Path | None = None
    keys: Path | None = None


async def print_receipt(server: str | None, debate_id: str, output: Path | None) -> None:
    """Print the receipt of a debate, or write it to the file. Raise CommandError."""
    if output is not None:
        check_output_path("--output", output)
    async with connect_orchestrator(server) as (_, parley):
        receipt = (await parley.get_receipt(await find_debate_id(parley, debate_id))).receipt
    if output is None:
        print_text(receipt)
    else:
        write_file(output, printable(receipt))


async def verify_file(server: str | None, evidence: Evidence) -> None:
    """Check a receipt or an archive, and print what was checked. Raise CommandError where something is not as it was signed."""
    is_archive = _is_archive(evidence.file)
    if is_archive and (evidence.log or evidence.answer):
        raise CommandError(
            "an archive has its log and its answer; leave out --log and --answer", INVALID_ARGUMENTS
        )
    async with _open_parley(server, evidence) as parley:
        keys = _read_key_file(evidence.keys) if parley is None else await parley.list_receipt_keys()
        if is_archive:
            _verify_archive(evidence.file, keys)
        else:
            await _verify_receipt(parley, evidence, keys)


async def _verify_receipt(
    parley: ParleyClient | None, evidence: Evidence, keys: Sequence[ReceiptKey]
) -> None:
    with _explain(str(evidence.file)):
        found = verify_receipt(_decode(_read(evidence.file)), keys)
    _print_receipt(found)
    if evidence.log is not None:
        with _explain(str(evidence.log)):
            _print_log(found, read_log_file(_read(evidence.log)))
    elif parley is not None:
        await _check_log_of(parley, found)
    else:
        say("the log was not checked; name it with --log")
    if evidence.answer is not None:
        with _explain(str(evidence.answer)):
            _print_answer(found, _read(evidence.answer))


def _verify_archive(file: Path, keys: Sequence[ReceiptKey]) -> None:
    archive = _open_archive(file)
    for debate in archive.debates:
        _verify_debate(file, debate, keys)
    say("only logs and answers are signed: reports and all other files of the archive were not checked")
    for debate_id in archive.unsigned:
        say(f"{debate_id} has no receipt: nothing of it was checked")


def _open_archive(file: Path) -> Archive:
    """Return what an archive has, at least one debate with a receipt. Raise CommandError."""
    try:
        with _explain(str(file)):
            archive = read_archive(file)
            if not archive.debates:
                raise VerificationError("no debate in it has a receipt")
            return archive
    except OSError as error:
        raise CommandError(f"{file}: cannot be read: {error.strerror or error}", INVALID_ARGUMENTS) from None


def _verify_debate(file: Path, debate: ArchivedDebate, keys: Sequence[ReceiptKey]) -> None:
    """Check a debate of an archive, and print what was checked. Raise CommandError."""
    with _explain(f"{file}: {debate.debate_id}/{RECEIPT}"):
        found = verify_receipt(_decode(debate.receipt), keys)
        if found.debate_id != debate.debate_id:
            raise VerificationError(f"it is about another debate, {found.debate_id!r:.60}")
    _print_receipt(found)
    with _explain(f"{file}: {debate.debate_id}/{LOG}"):
        _print_log(found, debate.entries)
    with _explain(f"{file}: {debate.debate_id}/{ANSWER}"):
        _print_answer(found, debate.answer)


async def import_debates(server: str | None, file: Path, key_file: Path | None) -> None:
    """Check the debates of an archive, and have them kept. Raise CommandError where something is not as it was signed."""
    trusted = _read_key_file(key_file) if key_file is not None else None
    archive = _open_archive(file)
    debates = [(each, _keys_of(file, each) if trusted is None else trusted) for each in archive.debates]
    for each, keys in debates:  # all, before anything is kept
        _verify_debate(file, each, keys)
    if trusted is None:
        say(
            "the key is the archive's own: compare it with one that you got by another way, or name that with --keys"
        )
    async with connect_orchestrator(server, "importing") as (_, parley):
        for each, keys in debates:
            log = b"".join(map(frame, each.entries))
            kept = await parley.import_debate(_decode(each.receipt), keys, log)
            print_line(f"{kept.debate_id} {'is here already' if kept.existed else 'is here now, to be read'}")
    for debate_id in archive.unsigned:
        say(f"{debate_id} has no receipt, and is not imported")


def _keys_of(file: Path, debate: ArchivedDebate) -> Sequence[ReceiptKey]:
    """Return the keys that an archive has for a debate. Raise CommandError."""
    try:
        return read_keys(debate.keys)
    except KeyFileError as error:
        raise CommandError(f"{file}: {debate.debate_id}/{KEYS}: {error}") from None


@asynccontextmanager
async def _open_parley(server: str | None, evidence: Evidence) -> AsyncIterator[ParleyClient | None]:
    """Yield the Parley whose keys are trusted; None if a file has them."""
    if evidence.keys is not None and server is not None:
        raise CommandError("--keys and --server: name one of them", INVALID_ARGUMENTS)
    if evidence.keys is not None:
        yield None
        return
    async with connect_orchestrator(server) as (_, parley):
        yield parley


async def _check_log_of(parley: ParleyClient, found: VerifiedReceipt) -> None:
    """Check the log that Parley has; one that it does not have is only said."""
    try:
        entries = [each async for each in parley.read_log(found.debate_id)]
    except ParleyError as error:
        if error.code is not grpc.StatusCode.NOT_FOUND:
            raise
        say(f"the log was not checked: this Parley has no debate {found.debate_id}; name its log with --log")
        return
    with _explain(f"the log of {found.debate_id}"):
        _print_log(found, entries)


def _print_receipt(found: VerifiedReceipt) -> None:
    receipt = found.statement.receipt
    print_line(f"receipt  signed by the key {found.key.id}")
    print_line(
        f"         debate {receipt.debate_id}, {receipt.format}: {to_line(receipt.question, SHORT_WIDTH)}"
    )
    if receipt.machine_only:
        say(_MACHINE_ONLY)


def _print_log(found: VerifiedReceipt, entries: Sequence[bytes]) -> None:
    """Check a log, and print what was checked. Raise VerificationError."""
    count, signed = verify_log(found.statement, entries), found.statement.log.sequence
    after = f"; after them, {count - signed} that nobody signed" if count > signed else ""
    print_line(
        f"log      the {signed} events that were signed are as they were, and so is the answer in them{after}"
    )


def _print_answer(found: VerifiedReceipt, answer: bytes) -> None:
    """Check an answer, and print that it is the one. Raise VerificationError."""
    verify_answer(found.statement, _decode(answer))
    print_line("answer   the text is the answer that was signed")


def _read_key_file(path: Path | None) -> Sequence[ReceiptKey]:
    assert path is not None
    try:
        return read_keys(_read(path))
    except KeyFileError as error:
        raise CommandError(f"--keys {path}: {error}", INVALID_ARGUMENTS) from None


def _is_archive(path: Path) -> bool:
    """Return whether a file begins as an archive does. What is no regular file is read once, as a receipt."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_ZIP)) == _ZIP
    except OSError:
        return False


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror or error}", INVALID_ARGUMENTS) from None


def _decode(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise VerificationError(f"it is no text: byte {error.start:,} is not UTF-8") from None


@contextmanager
def _explain(what: str) -> Iterator[None]:
    """Raise a failed check of `what` as an error of the command."""
    try:
        yield
    except VerificationError as error:
        hint = _ELSEWHERE if isinstance(error, UnknownKeyError) else ""
        raise CommandError(f"{what}: {error}{hint}") from None
