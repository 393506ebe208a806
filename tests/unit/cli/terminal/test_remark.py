"""What an answer came from, in a line."""

from parley.cli.terminal.debate_overview import overview_lines
from parley.cli.terminal.remark import summary_line
from parley.client import Debate
from parley.v1.debate_pb2 import STOP_REASON_ALL_ROUNDS_HELD, StopReason


def test_a_demonstration_is_called_one_first() -> None:
    assert summary_line(Debate(demonstration=True, calls=2)).startswith("demonstration · 2 calls")
    assert "demonstration" not in summary_line(Debate(calls=2))


def test_an_overview_calls_it_one_too() -> None:
    assert any(
        "a demonstration" in line for line in overview_lines(Debate(demonstration=True), "", alone=False)
    )
    assert not any("demonstration" in line for line in overview_lines(Debate(), "", alone=False))


def test_why_the_rounds_ended_is_told_in_few_words_for_every_reason() -> None:
    assert "all rounds held" in summary_line(Debate(stop_reason=STOP_REASON_ALL_ROUNDS_HELD, calls=2))
    told = {summary_line(Debate(stop_reason=each, calls=2)) for each in StopReason.values()}
    assert len(told) == len(StopReason.values()), "each in words of its own, none for what is not known"
