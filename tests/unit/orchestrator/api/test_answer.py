"""The answer of a debate as Markdown, in the way of its format."""

from collections.abc import Iterator, Sequence

import pytest
from markdown_it import MarkdownIt

from parley.orchestrator.api.answer import answer_markdown, answer_parts, process_markdown
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import AnswerPart, Format, Verdict
from parley.v1.debate_pb2 import (
    STOP_REASON_ALL_ROUNDS_COMPLETED,
    STOP_REASON_UNDISPUTED,
    ContextDocument,
    DebateEstimate,
    DebateSpec,
    Outcome,
    StopReason,
)
from parley.v1.debate_pb2 import Debate as DebateMessage
from parley.v1.effect_pb2 import DebateEffect
from parley.v1.source_pb2 import Source

DEBATE = DebateMessage(outcome=Outcome(description="Use *one*.\n\n```\ncode\n```"))


async def _run(_debate: Debate) -> Outcome:
    raise AssertionError("nothing is run here")


def make_format(*parts: AnswerPart, dissent: Sequence[str] | None = None) -> Format:
    """A format that shows its answer so; with this dissent in its verdict, if it has one."""

    def answer(_debate: DebateMessage) -> Iterator[AnswerPart]:
        yield from parts

    verdict = None if dissent is None else lambda _debate: Verdict(dissent=dissent)
    return Format("poll", 1, _run, answer=answer, verdict=verdict)


def test_of_a_format_that_is_not_known_the_answer_alone_is_shown() -> None:
    assert list(answer_parts(DEBATE, None)) == [AnswerPart("", DEBATE.outcome.description)]
    assert answer_markdown(DEBATE, None) == DEBATE.outcome.description + "\n"


def test_a_format_that_says_nothing_of_its_answer_shows_the_answer_alone() -> None:
    assert answer_markdown(DEBATE, Format("poll", 1, _run)) == DEBATE.outcome.description + "\n"


def test_parts_stand_in_their_order_under_their_titles_and_what_was_written_stands_as_it_was() -> None:
    shown = answer_markdown(
        DEBATE,
        make_format(
            AnswerPart("", DEBATE.outcome.description),
            AnswerPart("Next", " Begin.\n"),
            AnswerPart("Risks", items=["one", "two"]),
            AnswerPart("Votes", "3 of 4", quoted=False),
        ),
    )
    assert shown == (
        f"{DEBATE.outcome.description}\n\n## Next\n\nBegin.\n\n## Risks\n\n- one\n- two\n\n## Votes\n\n3 of 4\n"
    )


def test_headings_in_the_text_of_a_part_stand_below_that_of_the_part() -> None:
    parts = (AnswerPart("", "Yes.\n\n# Load"), AnswerPart("Implementation", "## Decision\n\nBegin."))
    shown = answer_markdown(DEBATE, make_format(*parts))
    assert shown == "Yes.\n\n### Load\n\n## Implementation\n\n### Decision\n\nBegin.\n"


def test_what_was_decided_comes_before_an_answer_that_may_be_long() -> None:
    parts = (AnswerPart("", "Use one.\n\n# Load\n\nIt is low."), AnswerPart("Next", "Begin."))
    assert answer_markdown(DEBATE, make_format(*parts, dissent=["Bo objects: No."])) == (
        "## In short\n\n- **Decision:** Use *one*.\n- **Confidence:** Not stated.\n- **Dissent:** Bo objects: No.\n\n"
        "## Answer\n\nUse one.\n\n### Load\n\nIt is low.\n\n## Next\n\nBegin.\n"
    )


def list_titles(dissent: list[str] | None, **options: bool) -> list[str]:
    parts = (AnswerPart("", "Yes."), AnswerPart("Dissent", items=dissent or ["No."], is_dissent=True))
    shown = answer_markdown(DEBATE, make_format(*parts, dissent=dissent), **options)
    return [line for line in shown.splitlines() if line.startswith("## ")]


def test_dissent_is_told_once() -> None:
    assert list_titles(["Bo objects: No."]) == ["## In short", "## Answer"]


@pytest.mark.parametrize("dissent", [["no " * 140], ["No."] * 6], ids=["long", "many"])
def test_dissent_of_which_only_a_part_is_told_in_short_is_told_whole_below(dissent: list[str]) -> None:
    assert list_titles(dissent) == ["## In short", "## Answer", "## Dissent"]


@pytest.mark.parametrize(("count", "told"), [(6, "1 more is below."), (7, "2 more are below.")])
def test_how_much_dissent_is_not_told_in_short_is_said(count: int, told: str) -> None:
    shown = answer_markdown(DEBATE, make_format(AnswerPart("", "Yes."), dissent=["No."] * count))
    assert f"- **Dissent:** {told}\n" in shown


def test_dissent_is_told_where_nothing_is_told_in_short() -> None:
    assert list_titles(None) == ["## Dissent"]
    assert list_titles(["Bo objects: No."], alone=True) == ["## Dissent"]


def test_how_an_answer_came_about_stands_for_itself() -> None:
    parts = (
        AnswerPart("", "Yes."),
        AnswerPart("Vote", items=["2 of 3"], is_process=True),
        AnswerPart("Dissent", "None."),
        AnswerPart("Ranking", "1. ada", is_process=True),
    )
    assert answer_markdown(DEBATE, make_format(*parts)) == "Yes.\n\n## Dissent\n\nNone.\n"
    assert process_markdown(DEBATE, make_format(*parts)) == "## Vote\n\n- 2 of 3\n\n## Ranking\n\n1. ada"
    assert process_markdown(DEBATE, None) == ""


def test_parts_that_say_nothing_are_left_out() -> None:
    parts = (
        AnswerPart("", "Yes."),
        AnswerPart("Next", " \n"),
        AnswerPart("Risks", items=[]),
        AnswerPart("Left"),
    )
    assert list(answer_parts(DEBATE, make_format(*parts))) == [AnswerPart("", "Yes.")]
    assert answer_markdown(DEBATE, make_format(*parts)) == "Yes.\n"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (STOP_REASON_ALL_ROUNDS_COMPLETED, "It took three calls."),
        (STOP_REASON_UNDISPUTED, "It took three calls, up to six fewer than with all rounds."),
    ],
)
def test_calls_are_saved_by_rounds_that_were_not_held_and_the_analysis_is_no_call_of_them(
    reason: StopReason.ValueType, said: str
) -> None:
    debate = DebateMessage(
        spec=DebateSpec(analysis=True),
        estimate=DebateEstimate(max_calls=10),
        calls=3,
        stop_reason=reason,
        outcome=Outcome(description="Yes.", effect=DebateEffect()),
    )
    assert f"- {said}\n" in answer_markdown(debate, None)


def test_every_item_is_one_item() -> None:
    items = ["one\n\ntwo", "- three", "four\n- five", "---", "```\nsix"]
    shown = answer_markdown(DEBATE, make_format(AnswerPart("Risks", items=items), AnswerPart("Left", "End.")))
    tokens = MarkdownIt("commonmark").parse(shown)
    assert [each.level for each in tokens if each.type == "list_item_open"].count(1) == len(items)
    assert [each.type for each in tokens].count("heading_open") == 2


def test_a_demonstration_says_so_before_anything_else() -> None:
    debate = DebateMessage(outcome=DEBATE.outcome, demonstration=True)
    shown = answer_markdown(debate, None)
    mark, _, rest = shown.partition("\n\n")
    assert mark.startswith("*Demonstration: a very small model wrote this")
    assert mark.endswith(".*")
    assert rest == DEBATE.outcome.description + "\n"


def answer_with_sources(*sources: Source, context: tuple[str, ...] = (), alone: bool = False) -> str:
    """An answer that cites the sources 2 and 9."""
    debate = DebateMessage(
        spec=DebateSpec(context=[ContextDocument(path=each) for each in context]),
        sources=sources,
        outcome=Outcome(description="Use one [S2], and no other [S9; S2]."),
    )
    return answer_markdown(debate, None, alone=alone)


def test_an_answer_ends_with_the_sources_that_it_cites() -> None:
    shown = answer_with_sources(
        Source(number=1, path="docs/other.md"),
        Source(
            number=2, title="Otters *[float](https://store.example)*\n# 2026", url="https://dam.example/a_b"
        ),
        context=("docs/other.md",),
    )
    assert shown.partition("## Sources\n\n")[2] == (
        "- S2: Otters \\*(float)(https://store.example)\\* \\# 2026 (https://dam.example/a\\_b)\n"
        "- There is no source S9.\n"
    )


def test_an_answer_without_citations_or_for_those_who_judge_it_has_no_list_of_sources() -> None:
    source = Source(number=2, path="docs/other.md")
    debate = DebateMessage(sources=[source], outcome=Outcome(description="Use one."))
    assert "Sources" not in answer_markdown(debate, None)
    assert "Sources" not in answer_with_sources(source, alone=True)


def test_nothing_is_said_of_citations_where_documents_have_no_numbers() -> None:
    assert "Sources" not in answer_with_sources(context=("docs/other.md",))
