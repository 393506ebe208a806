"""Debates as files: for people and programs, and the stored bytes with a receipt to verify them."""

import asyncio
import base64
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import grpc
from google.protobuf.descriptor_pool import Default
from google.protobuf.json_format import MessageToDict

from parley.client.debates import ParleyClient
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument
from parley.runtime.validation import DEBATE_ID
from parley.v1 import convergence_pb2, gateway_pb2, memory_pb2, ratings_pb2
from parley.v1.event_pb2 import Event
from parley.v1.receipt_pb2 import GetReceiptResponse

if TYPE_CHECKING:
    import zipfile

_PARTIAL: Final = ".partial"
_RESULT_MODULES: Final = (convergence_pb2, gateway_pb2, memory_pb2, ratings_pb2)
"""The modules of messages that are results of steps; protobuf only knows messages of imported modules."""
_NO_RECEIPT: Final = frozenset({"NO_RECEIPT_KEY", "RECEIPT_KEY_UNUSABLE", "DEBATE_NOT_COMPLETED"})


async def export(parley: ParleyClient, file: Path, debate_ids: Sequence[str] = ()) -> int:
    """Write debates into a ZIP file, whole or not at all: the given ones, or all of the tenant; return how many.

    Each has a folder of its id, whose README says what is in it and how the receipt is verified without Parley. A debate that does
    not change gives the same bytes again. Events recorded after the export began may be missing. Needs the extras `pages` and `receipts`.

    Raises:
        ParleyError: a debate cannot be read, or an id is invalid.
        OSError: the file cannot be written.
    """
    import zipfile

    ids = list(dict.fromkeys(debate_ids or [each.id async for each in parley.list()]))
    _check_ids(ids)
    # A new file with an unpredictable name, for its owner only.
    descriptor, name = tempfile.mkstemp(_PARTIAL, f".{file.name}.", file.parent)
    partial, written = Path(name), 0
    try:
        with os.fdopen(descriptor, "wb") as opened, zipfile.ZipFile(opened, "w") as archive:
            for debate_id in ids:
                written += await _write_debate(parley, archive, debate_id, may_be_gone=not debate_ids)
        await asyncio.to_thread(_publish, partial, file)
    except BaseException:
        os.unlink(partial)  # noqa: PTH108 (at once, whatever cancels)
        raise
    return written


def _check_ids(ids: Sequence[str]) -> None:
    """Raise ParleyError for an invalid id, also from a server: as a path in the archive it could lead out of the folder."""
    for each in ids:
        if not DEBATE_ID.fullmatch(each):
            raise invalid_argument([FieldViolation("debate_ids", f"{each[:80]!r} is not a debate id")])


async def _write_debate(
    parley: ParleyClient, archive: "zipfile.ZipFile", debate_id: str, *, may_be_gone: bool
) -> bool:
    """Write one debate; return False if it was deleted after it was listed, which only `may_be_gone` allows."""
    try:
        report = await parley.get_report(debate_id)
        # Before the log, which then has all that the receipt is about, also where the debate concludes meanwhile.
        receipt = await _get_receipt(parley, debate_id)
        entries = [each async for each in parley.read_log(debate_id)]
        decision = await _get_decision(parley, debate_id)
    except ParleyError as error:
        if may_be_gone and error.code is grpc.StatusCode.NOT_FOUND:
            return False
        raise

    def write() -> None:
        from parley.receipts.archive import write_files

        files = {
            **_proof_files(entries, receipt, debate_id),
            **_readable_files(entries, report, decision),
        }
        write_files(archive, debate_id, files.items())

    await asyncio.to_thread(write)
    return True


async def _get_receipt(parley: ParleyClient, debate_id: str) -> GetReceiptResponse | None:
    """Return the receipt of a debate; None if there is none, also since the server is older than receipts."""
    try:
        return await parley.get_receipt(debate_id)
    except ParleyError as error:
        if error.reason in _NO_RECEIPT or error.code is grpc.StatusCode.UNIMPLEMENTED:
            return None
        raise


async def _get_decision(parley: ParleyClient, debate_id: str) -> str:
    """Return the decision document of a debate; empty if there is none."""
    try:
        return (await parley.get_decision(debate_id)).markdown
    except ParleyError as error:
        if error.reason == "NO_DECISION" or error.code is grpc.StatusCode.UNIMPLEMENTED:
            return ""
        raise


def _proof_files(
    entries: Sequence[bytes], signed: GetReceiptResponse | None, debate_id: str
) -> dict[str, bytes]:
    """Return the files by which a debate can be verified, and the one that says how."""
    from parley.receipts import archive
    from parley.receipts.keys import write_key_list, write_pem

    answer, log_files = archive.split_log(entries)
    files = {archive.README: archive.describe_archive(debate_id, is_signed=signed is not None).encode()}
    if answer is not None:
        files[archive.ANSWER] = answer.encode()
    files |= log_files
    if signed is not None:
        files[archive.RECEIPT] = signed.receipt.encode()
        files[archive.KEY] = write_pem(signed.key).encode()
        files[archive.KEYS] = write_key_list([signed.key]).encode()
    return files


def _readable_files(entries: Sequence[bytes], report: str, decision: str) -> dict[str, bytes]:
    """Return the files for people and programs. They are made of the log."""
    from parley.receipts.archive import document_name
    from parley.runtime.html_page import render_page

    events = [Event.FromString(each) for each in entries]
    files = {"report.md": report.encode(), "report.html": render_page(report).encode()}
    if decision:
        files["decision.md"] = decision.encode()
    context = events[0].debate_created.spec.context if events else ()
    for number, document in enumerate(context, start=1):
        name = document_name(number, document.path)
        files[name if name not in files else document_name(number, "")] = document.text.encode()
    files["events.jsonl"] = b"".join(_lines(events))
    return files


def _lines(events: Sequence[Event]) -> Iterator[bytes]:
    for each in events:
        yield json.dumps(_event_to_json(each), ensure_ascii=False).encode() + b"\n"


def _event_to_json(event: Event) -> dict[str, Any]:
    """Return an event as JSON; the result of a step that only a newer contract knows becomes its type and its bytes."""
    result = event.step_succeeded.value
    if not result.type_url or _is_known(result.TypeName()):
        return MessageToDict(event, preserving_proto_field_name=True)
    unknown = {"@type": result.type_url, "value": base64.b64encode(result.value).decode()}
    event.step_succeeded.ClearField("value")
    event_json: dict[str, Any] = MessageToDict(event, preserving_proto_field_name=True)
    event_json["step_succeeded"]["value"] = unknown
    return event_json


def _is_known(name: str) -> bool:
    try:
        Default().FindMessageTypeByName(name)
    except KeyError:
        return False
    return True


def _publish(partial: Path, file: Path) -> None:
    """Rename the whole file once its content is on the disk."""
    with partial.open("rb") as written:
        os.fsync(written.fileno())
    partial.replace(file)
