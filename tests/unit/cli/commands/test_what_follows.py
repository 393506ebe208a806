"""What a person who waits after the answer is told."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import cast

import pytest
from google.protobuf.message import Message

from parley.cli.commands.follow import Follower
from parley.cli.commands.interrupts import Interrupts
from parley.client import Event, ParleyClient
from parley.v1.analysis_pb2 import Analysis
from parley.v1.event_pb2 import AnswerAnalysed, Warned
from tests.support.made_events import made_event


@pytest.mark.parametrize(
    ("event", "doing"),
    [
        (Warned(message="late"), "Finding out what the answer rests on"),
        (AnswerAnalysed(analysis=Analysis(missing="no call")), "Remembering the debate"),
    ],
)
async def test_who_waits_hears_what_is_still_to_come(
    event: Message, doing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def watch(*_: object) -> AsyncIterator[Event]:
        yield made_event(event)
        await asyncio.Event().wait()

    monkeypatch.setattr("parley.cli.commands.follow._SILENT_SECONDS", 0.01)
    monkeypatch.setattr("parley.cli.commands.follow._CLOSING_SECONDS", 0.01)
    follower = Follower(Interrupts(), None, "lines")
    await follower.wait_until_closed(cast(ParleyClient, SimpleNamespace(watch=watch)), "deb-1")
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"{doing}; Ctrl-C leaves at once")
