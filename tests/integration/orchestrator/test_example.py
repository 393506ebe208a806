"""The example debate is a debate like any other: its format goes on with its record to the same end."""

from pathlib import Path

from parley.example.record import read_events
from parley.v1.event_pb2 import Concluded
from tests.support.debate_logs import check_log, leave_log
from tests.support.orchestration import backstage


async def test_the_example_is_gone_on_with_to_the_same_end_and_nothing_is_asked(tmp_path: Path) -> None:
    """If this fails, words or steps have changed of a version that is not released: record the example again."""
    events = list(read_events())
    concluded = next(place for place, event in enumerate(events) if event.kind == "concluded")
    async with backstage(tmp_path) as stage, stage.replica():
        debate = await leave_log(stage, events[:concluded])
        replayed = await stage.comes_to(debate, "COMPLETED")
    check_log(replayed)
    assert not stage.gateway.calls
    ends = [
        [each.payload for each in log if isinstance(each.payload, Concluded)] for log in (events, replayed)
    ]
    assert ends[0] == ends[1]
