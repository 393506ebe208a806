"""Failures that come of generated code which is older than the contract say so."""

import pytest

from tests.support.stale_contract import note_stale_contract


def note_error(error: str) -> str:
    report = pytest.CollectReport("tests/some.py", "failed", f"E   {error}\ntests/some.py:3: {error}", None)
    note_stale_contract(report)
    return "".join(text for _, text in report.sections)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        ("ImportError: cannot import name 'PhaseEntered' from 'parley.v1.event_pb2' (there)", "PhaseEntered"),
        ("AttributeError: module 'parley.v1.event_pb2' has no attribute 'PhaseEntered'", "PhaseEntered"),
        ('ValueError: Protocol message ArenaSettings has no "observer" field.', "observer"),
        ("AttributeError: observer", "observer"),
    ],
)
def test_a_name_of_the_contract_that_is_missing_is_made_by_make_protos(error: str, name: str) -> None:
    assert note_error(error) == f"protos/ has `{name}`; if services/parley/v1 lacks it, run `make protos`"


def test_a_name_that_the_contract_has_not_either_is_another_mistake() -> None:
    assert note_error("AttributeError: no_such_field") == ""
