"""Ends of rounds: each is known to the moderator's answer."""

from typing import get_args

from parley.orchestrator.formats.moderated.ends import ENDS
from parley.orchestrator.formats.moderated.evaluate import Decision


def test_the_moderator_may_say_each_end_and_that_the_debate_goes_on() -> None:
    assert set(get_args(Decision)) == {"go_on", "clarify", *ENDS}
