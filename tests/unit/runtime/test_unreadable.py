"""What cannot be read is passed over and told of once."""

import pytest

from parley.runtime.logs import configure_logging
from parley.runtime.telemetry import BoundedNames
from parley.runtime.unreadable import UnreadableError, read_or_raise, skip_unreadable


def test_what_cannot_be_read_is_passed_over_and_told_of_once(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    for _ in range(3):
        assert list(skip_unreadable(["1", "odd", "3"], int, "number", lambda each: f"key-{each}")) == [1, 3]
    told = capsys.readouterr()
    assert (told.out + told.err).count("key-odd") == 1
    with pytest.raises(UnreadableError, match="number key-odd cannot be read"):
        read_or_raise("odd", int, "number", lambda each: f"key-{each}")


def test_a_metric_has_so_many_labels_and_no_more_whatever_callers_name() -> None:
    names = BoundedNames(3)
    assert [names.label(each) for each in "abcdabcd"] == ["a", "b", "c", "other"] * 2
