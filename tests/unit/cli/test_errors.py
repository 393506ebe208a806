import pytest

from parley.cli.errors import translated
from parley.cli.failures import GENERAL, CommandError
from parley.runtime.errors import PartFailedError


def test_a_system_whose_part_fails_ends_the_command_with_one_line_and_exit_code_1() -> None:
    failure = PartFailedError("keeping the calls failed: KeyError: 'run-7'")
    with pytest.raises(CommandError) as caught, translated():
        raise ExceptionGroup("several", [failure])
    assert (str(caught.value), caught.value.code, caught.value.more) == (str(failure), GENERAL, ())
    assert GENERAL == 1
