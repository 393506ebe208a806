"""The examples that hypothesis tries."""

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture.providers import _get_local_constants


@pytest.mark.skipif(settings.get_current_profile_name() != "parley", reason="a search tries more")
def test_examples_do_not_depend_on_what_else_our_modules_hold() -> None:
    assert len(_get_local_constants()) == 0
