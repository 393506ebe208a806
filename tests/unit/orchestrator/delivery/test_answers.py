"""The answer that hooks are told is written once for all of them, and not at all of a debate that is gone."""

from pathlib import Path

import pytest

from parley.orchestrator.delivery.answers import RememberedAnswers
from parley.orchestrator.delivery.news import MAX_ANSWER
from parley.orchestrator.log.debate_record import COMPLETED
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.runtime.errors import ParleyError
from parley.storage.opening import open_store
from tests.contract.test_waiting_debates import record

TENANT = "default"


async def test_an_answer_is_written_once_as_long_as_its_debate_is_there(tmp_path: Path) -> None:
    written: list[str] = []

    async def write(_: str, debate: str) -> str:
        written.append(debate)
        return f"{debate}: {'long ' * MAX_ANSWER}"

    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await store.documents.prepare(DEBATES)
        index = DebateIndex(store.documents)
        answers = RememberedAnswers(write, index)
        debate = record("one", status=COMPLETED, open=False)
        await index.insert(debate)
        first = await answers.write(TENANT, "one")
        assert len(first) == MAX_ANSWER
        assert await answers.write(TENANT, "one") == first
        assert (await answers.write(TENANT, "two")).startswith("two: ")
        assert written == ["one", "two"]
        assert await index.remove(debate)
        with pytest.raises(ParleyError, match="not found"):
            await answers.write(TENANT, "one")
