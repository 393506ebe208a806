"""What a debate leaves in the data folder of the embedded system."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from parley.client import ParleyClient
from parley.local import LocalOptions, local_system
from parley.storage.sqlite.log import unpack
from tests.bench.environment import use_environment
from tests.bench.graph import Shape
from tests.bench.system import run_debate, spec
from tests.support.model_server import ModelServer


def _read_cells(folder: Path) -> Iterator[bytes]:
    """Yield all that stands in the tables, of records of logs each entry."""
    with closing(sqlite3.connect(folder / "parley.db")) as store:
        tables = store.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for row in store.execute(f'SELECT * FROM "{table}"'):
                for each in row:
                    yield from unpack(each) if isinstance(each, bytes) else [str(each).encode()]


async def test_each_answer_stands_once_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    async with ModelServer(states_positions=True) as models:
        use_environment(tmp_path, models.base_url)
        async with local_system(LocalOptions()) as running:
            assert running.channel is not None
            client = ParleyClient.over(running.channel, ())
            run = await run_debate(client, spec(Shape(3, 1), "Tabs or spaces?"))
    stored = b"\n".join(_read_cells(tmp_path))
    drafts = [text for step, text in run.texts.items() if "/propose/" in step]
    assert [stored.count(each.encode()) for each in drafts] == [1, 1, 1]
