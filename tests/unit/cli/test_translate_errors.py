import pytest

from parley.cli.errors import GENERAL, CommandError
from parley.cli.translate_errors import is_provider_failure, translate_errors
from parley.runtime.errors import PartFailedError


def test_a_system_whose_part_fails_ends_the_command_with_one_line_and_exit_code_1() -> None:
    failure = PartFailedError("keeping the calls failed: KeyError: 'run-7'")
    with pytest.raises(CommandError) as caught, translate_errors():
        raise ExceptionGroup("several", [failure])
    assert (str(caught.value), caught.value.code, caught.value.more) == (str(failure), GENERAL, ())
    assert GENERAL == 1


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("PROVIDER_AUTH", True),
        ("BAD_REQUEST", True),
        ("UNKNOWN_ROUTE", True),
        ("INTERNAL", False),
        ("", False),
    ],
)
def test_what_a_provider_refuses_is_its_failure_too(reason: str, expected: bool) -> None:
    assert is_provider_failure(reason) is expected
