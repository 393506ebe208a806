"""Documents as people read them, kept as files: what they say, where it stands, and by which names."""

import re

import pytest
from markdown_it import MarkdownIt

from tests.support.kept_documents import DOCUMENTS, KeptDocument, render

FIRST_LINES = 40
ALL = pytest.mark.parametrize("kept", DOCUMENTS.values(), ids=DOCUMENTS)
OWN_HEADINGS = re.compile(
    r"(Answer|In short|Implementation|Recommendations?|Requirements|Trade-offs|Open questions|Scores|Question|Issues|Rounds|Round \d+"
    r"|Proposals|Critiques|Refinements|Final refinements|Votes?|Objections|How it was decided|Vote( \d+ of \d+)?(, which did not decide)?"
    r"|Ranking by .*|Dissent|Verification|Not asked|What the debate changed|Vote over the first drafts|Verdicts?|Judgement.*|The judge"
    r"|Clarifications|Interventions|Warnings|Failures|About this debate|Agents|Context|Totals|Before the rounds|After the rounds"
    r"|Perspectives Considered|Points of Agreement|Key Tensions|Dissenting View|Guidance|Approval|End of the Rounds|Follow-up|Sources|Usage"
    r"|(Finance|Product|Operations|Architect|Performance|Security|Judge)( on \w+)?|[\w-]+( [\w-]+)*: \w+|[A-Z][\w ]+ (Advocate|Simplicity|First))"
)


@ALL
def test_a_document_is_as_it_is_kept(kept: KeptDocument) -> None:
    stale = f"{kept.page.name}: read what has changed, then `python -m tests.support.kept_documents --render {kept.name}`"
    assert render(kept) == kept.page.read_text("utf-8"), stale


@ALL
def test_answer_decision_confidence_and_dissent_stand_in_the_first_lines(kept: KeptDocument) -> None:
    first = render(kept).split("\n")[:FIRST_LINES]
    for beginning in ("# ", "- **Decision:** ", "- **Confidence:** ", "- **Dissent:** "):
        assert any(line.startswith(beginning) and len(line) > len(beginning) for line in first), beginning
    answer = next(place for place, line in enumerate(first) if line in ("## Answer", "## Recommendation"))
    assert any(line.startswith("> ") for line in first[answer:])


@ALL
def test_no_letter_of_an_agent_shows(kept: KeptDocument) -> None:
    text = render(kept)
    assert not re.findall(r"\b[Aa]gents? [A-D]\b", text)
    assert not re.findall(r"\b[A-D]\.\d+\b", text)
    assert not re.findall(r"\bProposal \d\b", text), "a number without a key"


@ALL
def test_the_headings_are_the_documents_own(kept: KeptDocument) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(render(kept))
    found = [
        (each.level, tokens[place + 1].content)
        for place, each in enumerate(tokens)
        if each.type == "heading_open"
    ]
    assert {level for level, _ in found} == {0}
    assert [text for _, text in found[1:] if not OWN_HEADINGS.fullmatch(text)] == []
