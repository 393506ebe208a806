"""A list in one setting is read the way people write it."""

import pytest

from parley.runtime.comma_lists import split_list


@pytest.mark.parametrize(
    ("text", "parts"),
    [("", []), (" , ", []), ("a", ["a"]), ("a,b", ["a", "b"]), (" a , b c,,", ["a", "b c"])],
)
def test_spaces_around_parts_and_empty_parts_count_for_nothing(text: str, parts: list[str]) -> None:
    assert split_list(text) == parts
