"""Digests of what is asked: the same for the same request, before and after a field was added."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.canonical import ADDED_LATER, digest, digested
from parley.orchestrator.events import Work
from parley.orchestrator.spec import AgentSpec, Prompt, SummarySettings
from parley.orchestrator.tasks import AnswerShape, PromptPart, Task

ADA = AgentSpec(
    "ada",
    "Ada",
    "architect",
    ("p/m",),
    0.5,
    Prompt("Be bold.", "ada.md"),
    summaries=SummarySettings(max_length=9),
    instructions={"system": "You plan."},
)
BO = AgentSpec("bo", "Bo", "security")
CRITIQUE = Task(
    Work("critique", "ada", 2, "bo"),
    (PromptPart("system", "You plan."), PromptPart("user", "Why?", 2)),
    AnswerShape("s", "{}"),
    100,
)
PROPOSAL = Task(Work("proposal", "bo", 1), (PromptPart("user", "Why?"),))


def asked(agent: AgentSpec, task: Task) -> str:
    return digest(digested({"agent": agent, "task": task}))


@pytest.mark.parametrize(
    ("agent", "task", "recorded"),
    [
        (ADA, CRITIQUE, "45e5db4e8a16f10654bde50e81e72c68"),
        (BO, PROPOSAL, "4184b5f93e2c2ab4aca1eadc31f742db"),
    ],
)
def test_a_request_has_the_digest_that_logs_already_hold(agent: AgentSpec, task: Task, recorded: str) -> None:
    """Whoever breaks this by a new field of these classes must mark it with ADDED_LATER."""
    assert asked(agent, task) == recorded


def test_what_uses_a_field_that_was_added_has_another_digest() -> None:
    digests = {
        asked(BO, PROPOSAL),
        asked(replace(BO, tools=("file_read",)), PROPOSAL),
        asked(replace(BO, tool_call_limit=5), PROPOSAL),
    }
    assert len(digests) == 3


@dataclass(frozen=True)
class Part:
    text: str
    number: int = 0


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...] = ()
    named: dict[str, Part] = field(default_factory=dict)


@dataclass(frozen=True)
class PartNow(Part):
    kind: str = field(default="", metadata=ADDED_LATER)


PARTS = st.builds(Part, st.text(), st.integers())
WHOLES = st.builds(Whole, st.lists(PARTS).map(tuple), st.dictionaries(st.text(), PARTS))


@given(WHOLES)
def test_without_added_fields_every_field_counts_its_default_too(whole: Whole) -> None:
    assert digest(digested(whole)) == digest(asdict(whole))


@given(WHOLES, st.text(min_size=1))
def test_an_added_field_counts_as_soon_as_it_holds_something(whole: Whole, kind: str) -> None:
    def now(part: Part, **more: Any) -> PartNow:
        return PartNow(part.text, part.number, **more)

    assert digested([now(each) for each in whole.parts]) == digested(whole.parts)
    for part in whole.parts:
        assert digested(now(part, kind=kind)) == {**digested(part), "kind": kind}
