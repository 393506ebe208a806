"""Ids."""

from datetime import UTC, datetime

from parley.orchestrator.model.ids import new_debate_id
from parley.runtime.validation import DEBATE_ID

NOON = datetime(2031, 2, 3, 12, 34, 56, tzinfo=UTC)


def test_an_id_tells_when_the_debate_was_accepted() -> None:
    assert new_debate_id(NOON).startswith("deb-20310203-123456-")
    assert DEBATE_ID.fullmatch(new_debate_id(NOON))


def test_ids_of_one_second_differ() -> None:
    assert len({new_debate_id(NOON) for _ in range(100)}) == 100
