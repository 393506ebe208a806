"""Debates as files: events and reports for people and programs, and the stored bytes to verify them."""

import asyncio
import base64
import json
import os
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf.descriptor_pool import Default
from google.protobuf.json_format import MessageToDict

from parley.client.debates import ParleyClient
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument
from parley.runtime.validation import DEBATE_ID
from parley.v1 import convergence_pb2, gateway_pb2, memory_pb2, ratings_pb2
from parley.v1.event_pb2 import Event

__all__ = ["export"]

_PARTIAL: Final = ".partial"
_RESULT_MODULES: Final = (convergence_pb2, gateway_pb2, memory_pb2, ratings_pb2)
"""The modules of messages that are results of steps; protobuf only knows messages of imported modules."""
_BATCH_BYTES: Final = 256 * 1024
"""Bytes that are compressed at a time, in a thread."""


async def export(parley: ParleyClient, file: Path, debate_ids: Sequence[str] = ()) -> int:
    """Write debates into a ZIP file, whole or not at all: the given ones, or all of the tenant; return how many.

    Each has a folder of its id with `events.jsonl` (of each event `event`, as protobuf's JSON, and `stored`, its stored bytes
    in base64, by which the log can be verified) and `report.md`. Events recorded after the export began may be missing.

    Raises:
        ParleyError: a debate cannot be read, or an id is invalid.
        OSError: the file cannot be written.
    """
    ids = list(dict.fromkeys(debate_ids or [each.id async for each in parley.list()]))
    _check_ids(ids)
    # A new file with an unpredictable name, for its owner only.
    descriptor, name = tempfile.mkstemp(_PARTIAL, f".{file.name}.", file.parent)
    partial, written = Path(name), 0
    try:
        with (
            os.fdopen(descriptor, "wb") as opened,
            zipfile.ZipFile(opened, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
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
    parley: ParleyClient, archive: zipfile.ZipFile, debate_id: str, *, may_be_gone: bool
) -> bool:
    """Write one debate; return False if it was deleted after it was listed, which only `may_be_gone` allows."""
    try:
        report = await parley.get_report(debate_id)
    except ParleyError as error:
        if may_be_gone and error.code is grpc.StatusCode.NOT_FOUND:
            return False
        raise
    with archive.open(f"{debate_id}/events.jsonl", "w", force_zip64=True) as lines:
        waiting = b""
        async for entry in parley.read_log(debate_id):
            waiting += _line(entry)
            if len(waiting) > _BATCH_BYTES:
                await asyncio.to_thread(lines.write, waiting)
                waiting = b""
        await asyncio.to_thread(lines.write, waiting)
    await asyncio.to_thread(archive.writestr, f"{debate_id}/report.md", report)
    return True


def _line(entry: bytes) -> bytes:
    entry_json = {
        "event": _event_to_json(Event.FromString(entry)),
        "stored": base64.b64encode(entry).decode(),
    }
    return json.dumps(entry_json, ensure_ascii=False).encode() + b"\n"


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
