"""What the services call things, as people call them."""

import pytest

from parley.cli.terminal.words import cost_text, enum_text, failure_lines
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, DebateStatus, FailedContribution, Work


def test_a_value_of_an_enum_is_a_word_or_else_its_number() -> None:
    assert enum_text(DebateStatus.DESCRIPTOR, DEBATE_STATUS_COMPLETED) == "completed"
    assert enum_text(DebateStatus.DESCRIPTOR, 99) == "99"


def test_a_failure_names_the_agents_or_else_the_work_alone() -> None:
    memory = FailedContribution(
        work=Work(title="search for past debates"), reason="MEMORY_AWAY", message="no answer"
    )
    drafts = [
        FailedContribution(
            work=Work(title="proposal", agent_id=name, round=1), reason="PROVIDER_AUTH", message="401"
        )
        for name in ("ada", "bo")
    ]
    assert list(failure_lines([memory, *drafts])) == [
        "search for past debates: MEMORY_AWAY: no answer",
        "ada, bo in round 1 proposal: PROVIDER_AUTH: 401",
    ]


@pytest.mark.parametrize(
    ("micros", "text"), [(0, "$0"), (1, "less than $0.0001"), (100, "$0.0001"), (12_345, "$0.0123")]
)
def test_a_small_cost_is_not_shown_as_zeros(micros: int, text: str) -> None:
    assert cost_text(micros) == text
