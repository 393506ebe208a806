"""Ids."""

from datetime import UTC, datetime

from parley.orchestrator.ids import AGENT_ID, DEBATE_ID, REQUEST_ID, new_debate_id

NOON = datetime(2031, 2, 3, 12, 34, 56, tzinfo=UTC)


def test_an_id_tells_when_the_debate_was_accepted() -> None:
    assert new_debate_id(NOON).startswith("deb-20310203-123456-")
    assert DEBATE_ID.fullmatch(new_debate_id(NOON))


def test_ids_of_one_second_differ() -> None:
    assert len({new_debate_id(NOON) for _ in range(100)}) == 100


def test_ids_that_could_name_a_path_or_another_tenant_are_refused() -> None:
    for bad in ("", "../x", "deb-20310203-123456-AAAAAAAA", "deb-20310203-123456-aaaaaaaa\n", "a/b"):
        assert not DEBATE_ID.fullmatch(bad)
        assert not AGENT_ID.fullmatch(bad)
    assert not REQUEST_ID.fullmatch("a b")
