from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from parley.orchestrator.envelope import Draft
from parley.orchestrator.events import (
    Claimed,
    Concluded,
    DebateCreated,
    DebateFailed,
    Intervened,
    Payload,
    Recalled,
    Reply,
    RoundStarted,
    Solution,
    StepSucceeded,
    ToolCall,
    UnfulfilledRequirement,
    Usage,
    Warned,
    Work,
)
from parley.orchestrator.report import render
from parley.orchestrator.spec import ContextDocument, Prompt
from parley.orchestrator.state import FIRST_DRAFT_VOTE, fold
from tests.unit.orchestrator.made_logs import ADA, CREATED, DEBATE, SPEC, failed, log, succeeded

PROPOSAL = Work("proposal", "ada", 1)
CRITIQUE = Work("critique", "bo", 1, "ada")
REFINEMENT = Work("refinement", "ada", 1)
SYNTHESIS = Work("synthesis", "judge")
SOLUTION = Solution(
    "Use an embedded store.",
    implementation="Begin with one table.",
    tradeoffs=("Speed for ease.",),
    recommendations=("Measure first.", "Keep backups."),
    unfulfilled_requirements=(UnfulfilledRequirement("Two regions.", hard=True),),
    open_questions=("How many writers?",),
    confidence=40,
    synthesized_by="judge",
    scores={"ada": 7.5, "bo": 9},
)
BEGUN = (CREATED, Claimed("a"), RoundStarted(1, 1))
WHOLE = (
    *BEGUN,
    succeeded(PROPOSAL, "Use A.\nPosition: A."),
    succeeded(CRITIQUE, "A is slow."),
    succeeded(REFINEMENT, "Use B."),
    succeeded(SYNTHESIS, '{"description":"Use an embedded store."}'),
    Concluded("completed", SOLUTION),
)


def report(*drafts: Draft | Payload) -> str:
    return render(DEBATE, fold(log(*drafts)))


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def outline(text: str) -> list[str]:
    """The document's own headings, those inside of quotes and lists left out."""
    tokens = parsed(text)
    return [
        f"{token.markup} {tokens[place + 1].content}"
        for place, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]


def cells(text: str) -> list[str]:
    tokens = parsed(text)
    return [
        "".join(child.content for child in tokens[place + 1].children or ())
        for place, token in enumerate(tokens)
        if token.type in {"td_open", "th_open"}
    ]


def code(text: str) -> list[str]:
    return [token.content for token in parsed(text) if token.type == "fence"]


def test_a_report_reads_from_the_question_to_the_totals() -> None:
    assert outline(report(*WHOLE)) == [
        f"# Debate {DEBATE}",
        "## Question",
        "## Agents",
        "## Round 1",
        "### Proposals",
        "#### Ada (ada)",
        "### Critiques",
        "#### Bo (bo) on Ada (ada)",
        "### Refinements",
        "#### Ada (ada)",
        "## Judge",
        "### Answer",
        "### Implementation",
        "### Trade-offs",
        "### Recommendations",
        "### Unfulfilled requirements",
        "### Open questions",
        "### Confidence",
        "### Scores",
        "## Totals",
    ]


def test_a_contribution_stands_with_what_it_took() -> None:
    assert (
        "#### Bo (bo) on Ada (ada)\n\n"
        "small (openai-small) · 1.5 s · 10 tokens in, 5 out\n\n"
        "> A is slow.\n" in report(*WHOLE)
    )


def test_the_answer_is_told_with_all_that_belongs_to_it() -> None:
    text = report(*WHOLE)

    for said in (
        "> Use an embedded store.",
        "> Begin with one table.",
        "- Speed for ease.",
        "- Measure first.\n- Keep backups.",
        "- Two regions. (a must)",
        "- How many writers?",
        "40 of 100, by The judge (judge)",
    ):
        assert said in text
    assert [each for each in cells(text) if each in {"9", "7.5"}] == ["9", "7.5"]


def test_totals_count_the_judge_summaries_and_failed_calls() -> None:
    summary = Work("summary", "ada", 1)
    text = report(*WHOLE[:-1], succeeded(summary, "Short."), failed(CRITIQUE, attempt=2), WHOLE[-1])

    totals = cells(text)
    assert totals[totals.index("Model calls") + 1] == "6"
    assert totals[totals.index("Tokens in") + 1] == "53"
    assert totals[totals.index("Tokens out") + 1] == "25"
    assert totals[totals.index("Cost") + 1] == "0.000507 US dollars"
    assert totals[totals.index("Duration") + 1] == "9.0 s"


def test_a_cost_that_is_not_known_is_not_made_up() -> None:
    text = report(*BEGUN, succeeded(PROPOSAL, "Use A.", usage=Usage(1, 1, None, 1)))

    totals = cells(text)
    assert totals[totals.index("Cost") + 1] == "not known"


def test_agents_are_told_with_letter_role_model_and_prompt() -> None:
    spec = replace(
        SPEC, agents=(replace(ADA, system_prompt=Prompt("Be brief.", "prompts/ada.md")), *SPEC.agents[1:])
    )
    text = report(Draft("created", DebateCreated("r", spec)), succeeded(PROPOSAL, "Use A."))

    row = cells(text)[7:14]
    assert row == ["A", "ada", "Ada", "architect", "small (openai-small)", "prompts/ada.md", "built-in"]
    assert cells(text)[14:19] == ["B", "bo", "Bo", "security", "nobody yet; asked of the default routes"]


def test_an_unfinished_debate_says_so() -> None:
    text = report(*BEGUN, succeeded(PROPOSAL, "Use A."))

    assert "- Status: running" in text
    assert "There is no answer yet." in text
    assert "> Use A." in text


def test_a_debate_without_a_single_contribution_has_a_report() -> None:
    assert "- Status: pending" in report(CREATED)
    assert "Nothing was contributed." in report(*BEGUN)


def test_a_failed_debate_names_reason_phase_and_agent() -> None:
    failure = DebateFailed("CALL_TIMEOUT", "no answer", "ada", "round 1 proposal")
    text = report(*BEGUN, failed(PROPOSAL, "no | answer"), failure)

    assert "- Failed in round 1 proposal, agent ada: CALL\\_TIMEOUT: no answer" in text
    assert "There is no answer." in text
    assert cells(text)[cells(text).index("round 1 proposal") :][:5] == [
        "round 1 proposal",
        "ada",
        "1",
        "CALL_TIMEOUT",
        "no | answer",
    ]


def test_a_judge_answer_that_could_not_be_used_is_shown_as_it_came() -> None:
    text = report(
        *BEGUN, succeeded(SYNTHESIS, '{"description": 1}'), DebateFailed("INVALID", "not of its shape")
    )

    assert code(text) == ['{\n  "description": 1\n}\n']


def test_warnings_wishes_context_and_past_debates_are_told() -> None:
    spec = replace(SPEC, context=(ContextDocument("docs/load_test.md", "Text."),))
    wishes = (Intervened("w", "guide", "Mind the budget."), Intervened("v", "mute", agent="bo"))
    text = report(
        Draft("created", DebateCreated("r", spec)), Recalled(("deb-1",)), Warned("Bo is late."), *wishes
    )

    assert "- docs/load\\_test.md (5 characters)" in text
    assert "- deb-1" in text
    assert "- Bo is late." in text
    assert "- guide: Mind the budget.\n- mute bo" in text


def test_the_vote_over_the_first_drafts_is_told() -> None:
    groups = [{"agents": ["ada", "bo"], "position": "A."}, {"agents": ["judge"], "position": ""}]
    vote = StepSucceeded(Work(FIRST_DRAFT_VOTE), "d", value={"groups": groups, "majority": True})  # type: ignore[dict-item]
    text = report(*BEGUN, vote)

    assert "2 of 3 took the same position." in text
    assert "- Ada (ada), Bo (bo): A." in text


@pytest.mark.parametrize(
    ("written", "blocks"),
    [
        ("Before.\n```python\nx = 1\n```\nAfter.", ["x = 1\n"]),
        ("~~~\n```\ninner\n```\n~~~", ["```\ninner\n```\n"]),
        ("````md\n```\ninner\n```\n````", ["```\ninner\n```\n"]),
        ("```\n# no heading\n\n\ttabbed", ["# no heading\n\n\ttabbed"]),
        ("- item\n\n  ```\n  in a list\n  ```", ["in a list\n"]),
        ("```\r\nwindows\r\n```", ["windows\n"]),
    ],
)
def test_code_comes_through_as_it_was_written(written: str, blocks: list[str]) -> None:
    text = report(*BEGUN, succeeded(PROPOSAL, written), succeeded(CRITIQUE, "After it."))

    assert [block.rstrip("\n") for block in code(text)] == [block.rstrip("\n") for block in blocks]
    assert outline(text) == outline(
        report(*BEGUN, succeeded(PROPOSAL, "x"), succeeded(CRITIQUE, "After it."))
    )


PIECES = st.sampled_from(
    [
        "```",
        "~~~~",
        "````md",
        "# Title",
        "Title\n===",
        "---",
        "    code",
        "\tcode",
        "- item",
        "1. item",
        "> quote",
        "<!-- open",
        "<script>",
        "<div>",
        "</blockquote>",
        "<![CDATA[",
        "| a | b |\n|---|---|",
        "[Round 1]: http://127.0.0.1",
        "`open",
        "",
        "\r",
        "text",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=8), max_size=8).map("\n".join)


@given(question=TEXTS, text=TEXTS, item=TEXTS)
def test_nothing_that_anyone_writes_breaks_the_outline(question: str, text: str, item: str) -> None:
    def written(question: str, text: str, item: str) -> str:
        asked = Draft("created", DebateCreated("r", replace(SPEC, question=question)))
        solution = replace(SOLUTION, description=text, implementation="x" + text, tradeoffs=(item, text))
        return report(
            asked,
            Warned(item),
            RoundStarted(1, 1),
            succeeded(PROPOSAL, text),
            Intervened("w", "guide", item),
            Concluded("completed", solution),
        )

    assert outline(written(question, text, item)) == outline(written("x", "x", "x"))


@given(st.text(max_size=20))
def test_nothing_that_anyone_is_called_breaks_a_table(name: str) -> None:
    spec = replace(SPEC, agents=(replace(ADA, name=name), *SPEC.agents[1:]))
    text = report(Draft("created", DebateCreated("r", spec)), failed(PROPOSAL, name))

    assert len(cells(text)) == len(cells(report(CREATED, failed(PROPOSAL))))


def test_markup_in_a_cell_is_only_text() -> None:
    spec = replace(SPEC, agents=(replace(ADA, name="a|b `c` *d* <e> \\|\n# f"), *SPEC.agents[1:]))

    assert "a|b `c` *d* <e> \\| # f" in cells(report(Draft("created", DebateCreated("r", spec))))


def test_what_an_agent_looked_up_stands_above_what_it_wrote() -> None:
    calls = (
        ToolCall("context_search", '{"query": "write *speed*"}', characters=90),
        ToolCall("file_read", '{"path": "docs/a.md", "from": 3}', characters=12),
        ToolCall("file_read", '{"path": "gone.md"}', failed=True),
        ToolCall("list_files", "{}"),
        ToolCall("list_files", ""),
    )
    step = StepSucceeded(PROPOSAL, "digest", Reply("Use A.", tool_calls=calls))
    text = report(*BEGUN, Draft("1/proposal/ada", step, 1))
    (line,) = [each for each in text.splitlines() if each.startswith("Looked up: ")]
    assert line == (
        'Looked up: context\\_search "write \\*speed\\*", file\\_read docs/a.md 3, file\\_read gone.md (failed), '
        "list\\_files, list\\_files"
    )
    assert text.index(line) < text.index("> Use A.")


@given(st.text(max_size=600), st.text(max_size=600))
def test_whatever_a_model_asked_of_a_tool_it_stays_one_short_line(name: str, arguments: str) -> None:
    step = StepSucceeded(PROPOSAL, "digest", Reply("Use A.", tool_calls=(ToolCall(name[:64], arguments),)))
    told = report(*BEGUN, Draft("1/proposal/ada", step, 1))
    plain = report(*BEGUN, succeeded(PROPOSAL, "Use A."))
    assert outline(told) == outline(plain)
    assert len([each for each in told.splitlines() if each.startswith("Looked up: ")]) == 1


def test_nothing_is_said_of_tools_that_nobody_used() -> None:
    assert "Looked up" not in report(*WHOLE)
