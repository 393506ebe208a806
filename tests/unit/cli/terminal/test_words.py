"""What the services call things, as people call them."""

from parley.cli.terminal.words import enum_text
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, DebateStatus


def test_a_value_of_an_enum_is_a_word_or_else_its_number() -> None:
    assert enum_text(DebateStatus.DESCRIPTOR, DEBATE_STATUS_COMPLETED) == "completed"
    assert enum_text(DebateStatus.DESCRIPTOR, 99) == "99"
