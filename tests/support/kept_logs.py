"""Logs of debates that every later version must be able to go on with: a few small ones for each version of a format.

A file holds the stored bytes of a log in base64, an event a line. `python -m tests.support.kept_logs` records the logs
that are missing. One that is there stays, since open debates of its version have these words; only before a version is
released may `--again FORMAT` record its logs anew.
"""

import argparse
import asyncio
import base64
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from parley.orchestrator.log.envelope import GENESIS, Envelope, open_entry
from tests.support.kept_debates.arenas import arenas
from tests.support.kept_debates.evaluations import EVALUATION
from tests.support.kept_debates.kept_debate import FOLDER, KeptDebate, Person
from tests.support.kept_debates.moderated import moderated
from tests.support.kept_debates.panels import panels
from tests.support.kept_debates.small import EVERYTHING
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import (
    backstage,
)
from tests.support.small_format import (
    formats_with_small,
)

KEPT: Final = {
    each.id: each
    for each in (
        *panels("panel@1"),
        *arenas("arena@1"),
        *moderated("moderated@1"),
        EVALUATION,
        *EVERYTHING,
    )
}
"""By name of the file."""


def read_log(debate: KeptDebate) -> list[Envelope]:
    """The events of a file, checked to be chained."""
    events: list[Envelope] = []
    for line in debate.path.read_text("ascii").splitlines():
        before = events[-1].hash if events else GENESIS
        events.append(open_entry(base64.b64decode(line), before))
    return events


async def record_again(kept: KeptDebate) -> Sequence[Envelope]:
    """Hold a debate and return its log."""
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as folder:
        async with (
            backstage(Path(folder), kept.gateway(), formats_with_small()) as stage,
            stage.replica("kept", clock=clock) as replica,
        ):
            debate = await replica.create(kept.spec(kept.format), "kept")
            await kept.steer(Person(stage, replica, debate, clock))
            return await stage.comes_to(debate, "COMPLETED")


def main() -> None:
    """Record the logs that are missing, and those of a format anew."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    formats = sorted({each.format for each in KEPT.values()})
    parser.add_argument("--again", choices=formats, help="record those of this format anew too")
    again = parser.parse_args().again
    FOLDER.mkdir(parents=True, exist_ok=True)
    for each in KEPT.values():
        if again == each.format or not each.path.exists():
            events = asyncio.run(record_again(each))
            lines = [base64.b64encode(event.entry).decode() for event in events]
            each.path.write_text("\n".join(lines) + "\n", "ascii")


if __name__ == "__main__":
    main()
