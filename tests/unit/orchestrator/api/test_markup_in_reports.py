"""Whatever people and models write comes through a report as text and code, and breaks none of its parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.log.envelope import create_event
from parley.v1.agent_pb2 import ToolCall
from parley.v1.debate_pb2 import AnswerDetails, Outcome, Reply
from parley.v1.event_pb2 import Concluded, StepSucceeded, Warned
from parley.v1.panel_pb2 import PanelOutcome
from tests.support.interventions import intervention
from tests.support.orchestration import with_fields
from tests.unit.orchestrator.api.reports import (
    BEGUN,
    CRITIQUE,
    PROPOSAL,
    REFINEMENT,
    ROUND,
    cells,
    code,
    outline,
    report,
)
from tests.unit.orchestrator.made_logs import ADA, BO, CREATED, make_created, make_failure, make_success


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
    text = report(*BEGUN, make_success(PROPOSAL, written), make_success(CRITIQUE, "After it."))

    assert [block.rstrip("\n") for block in code(text)] == [block.rstrip("\n") for block in blocks]
    assert outline(text) == outline(
        report(*BEGUN, make_success(PROPOSAL, "x"), make_success(CRITIQUE, "After it."))
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
        "![seen](http://127.0.0.1/pixel.png)",
        "`open",
        "",
        "\r",
        "text",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=8), max_size=8).map("\n".join)


@given(question=TEXTS, text=TEXTS, item=TEXTS)
def test_nothing_that_anyone_writes_breaks_the_outline(question: str, text: str, item: str) -> None:
    def write_report(question: str, text: str, item: str) -> str:
        asked = create_event("created", make_created(question=question))
        details = AnswerDetails(implementation="x" + text, tradeoffs=[item, text])
        outcome = Outcome(description=text, details=details, panel=PanelOutcome(synthesized_by="judge"))
        return report(
            asked,
            Warned(message=item),
            ROUND,
            make_success(PROPOSAL, text),
            intervention("guide", "w", text=item),
            Concluded(outcome=outcome),
        )

    told = outline(write_report(question, text, item))
    assert told[0].startswith("# ")
    assert [each for each in told[1:] if each != "## Question"] == outline(write_report("x", "x", "x"))[1:]


@given(st.text(max_size=20))
def test_nothing_that_anyone_is_called_breaks_a_table(name: str) -> None:
    spec = make_created(agents=(with_fields(ADA, name=name), BO))
    text = report(create_event("created", spec), make_failure(PROPOSAL, name))

    assert len(cells(text)) == len(cells(report(CREATED, make_failure(PROPOSAL))))


def test_markup_in_a_cell_is_only_text() -> None:
    spec = make_created(agents=(with_fields(ADA, name="a|b `c` *d* <e> \\|\n# f"), BO))

    assert "a|b `c` *d* <e> \\| # f" in cells(report(create_event("created", spec)))


@given(st.text(max_size=600), st.text(max_size=600))
def test_whatever_a_model_asked_of_a_tool_it_stays_one_short_line(name: str, arguments: str) -> None:
    calls = [ToolCall(name=name[:64], arguments=arguments)]
    step = StepSucceeded(work=PROPOSAL, digest="digest", reply=Reply(text="Use A.", tool_calls=calls))
    told = report(*BEGUN, create_event("1/proposal/ada", step, 1))
    plain = report(*BEGUN, make_success(PROPOSAL, "Use A."))
    assert outline(told) == outline(plain)
    assert len([each for each in told.splitlines() if each.startswith("Looked up: ")]) == 1


def test_arguments_of_a_tool_that_are_no_text_do_not_keep_the_report_from_being_sent() -> None:
    calls = [ToolCall(name="file_read", arguments='{"path": "\\ud800"}')]
    step = StepSucceeded(work=PROPOSAL, digest="digest", reply=Reply(text="Use A.", tool_calls=calls))
    assert b"Looked up: file\\_read" in report(*BEGUN, create_event("1/proposal/ada", step, 1)).encode()


RICH = r"""# Not our heading

Costs $5 and $x^2$, or \(a_1 * b_2\), <b>bold</b>.

| a | b |
|---|---|
| 1 | `2` |

````markdown
```
# no heading
```
````

<!-- never closed
<script>
# nor this
$$
\sum_i x_i
"""


READ = (
    RICH.replace("# Not our heading", "**Not our heading**")
    .replace("# nor this", "\n**nor this**\n")
    .replace("<b>bold</b>", "\\<b>bold\\</b>")
    .replace("<!--", "\\<!--")
    .replace("<script>", "\\<script>")
)


def test_tables_code_and_math_come_through_word_for_word_headings_in_bold_and_html_as_text() -> None:
    plain = report(*BEGUN, make_success(PROPOSAL, "Use A."), make_success(REFINEMENT, "Use B."))
    rich = report(*BEGUN, make_success(PROPOSAL, RICH), make_success(REFINEMENT, RICH))
    assert outline(rich) == outline(plain)
    quoted = "\n".join(
        line.removeprefix(">").removeprefix(" ") for line in rich.split("\n") if line[:1] == ">"
    )
    assert quoted.count(READ.rstrip("\n")) == 2
    assert {"a", "b", "1", "2"} <= set(cells(rich))
    assert "```\n# no heading\n```\n" in code(rich)
