"""Validation of requests."""

import pytest

from parley.runtime.errors import FieldViolation
from parley.runtime.validation import AGENT_ID, CHECKPOINT_KEY, DEBATE_ID, REQUEST_ID, Violations
from tests.support.catching import list_violations


def test_ids_that_could_name_a_path_or_another_tenant_are_refused() -> None:
    for bad in ("", "../x", "deb-20310203-123456-AAAAAAAA", "deb-20310203-123456-aaaaaaaa\n", "a/b"):
        assert not DEBATE_ID.fullmatch(bad)
        assert not AGENT_ID.fullmatch(bad)
    assert not REQUEST_ID.fullmatch("a b")


def test_a_checkpoint_key_has_segments_and_256_characters_at_most() -> None:
    assert CHECKPOINT_KEY.fullmatch("round/2/checkpoint.a-b_c")
    for bad in ("", "/", "a/", "a//b", "A", "a\n", "a" * 257):
        assert not CHECKPOINT_KEY.fullmatch(bad)


def test_a_request_without_bad_fields_is_not_refused() -> None:
    Violations().refuse()


def test_every_bad_field_is_listed_in_the_order_of_the_checks() -> None:
    violations = Violations()
    violations.check_range("rounds", 101, 0, 100)
    violations.check_setting("limit", -1, 100)
    violations.check(that=False, field="domain", otherwise="is too long")
    violations.check_agent_count("agents", 0, minimum=1, maximum=3)
    assert list_violations(violations) == (
        FieldViolation("rounds", "must be 0 to 100"),
        FieldViolation("limit", "is -1, must be 1 to 100, or 0 for the default"),
        FieldViolation("domain", "is too long"),
        FieldViolation("agents", "has 0 agents, 1 to 3 are allowed"),
    )


def test_bounds_belong_to_the_range() -> None:
    violations = Violations()
    for value in (0, 100):
        violations.check_range("rounds", value, 0, 100)
        violations.check_setting("limit", value, 100)
    violations.check_text("text", "abc", max_characters=3)
    violations.check_stored_text("text", "é" * 512, max_bytes=1024)
    violations.refuse()


def test_what_is_no_number_is_in_no_range() -> None:
    violations = Violations()
    violations.check_range("temperature", float("nan"), 0, 2)
    assert list_violations(violations) == (FieldViolation("temperature", "must be 0 to 2"),)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (" \n", "is blank"),
        ("é" * 513, "is longer than 1 KiB"),
        ("a\0b", "contains a NUL character"),
    ],
)
def test_a_text_to_be_stored_is_bounded_in_bytes(text: str, wrong: str) -> None:
    violations = Violations()
    violations.check_stored_text("question", text, max_bytes=1024)
    assert list_violations(violations) == (FieldViolation("question", wrong),)


@pytest.mark.parametrize(
    ("text", "wrong"), [(" ", "is blank"), ("é" * 4, "has 4 characters, at most 3 are allowed")]
)
def test_a_text_that_is_only_read_is_bounded_in_characters(text: str, wrong: str) -> None:
    violations = Violations()
    violations.check_text("text", text, max_characters=3)
    assert list_violations(violations) == (FieldViolation("text", wrong),)


def test_a_name_is_there_once() -> None:
    violations, seen = Violations(), set[str]()
    for place, name in enumerate(("ada", "bo", "ada")):
        violations.check_new(f"agents[{place}]", name, seen)
    assert list_violations(violations) == (FieldViolation("agents[2]", "'ada' is there twice"),)
