"""An evaluation as CSV and JSON: every score in its place, and nothing that a spreadsheet would run."""

import csv
import io
import json
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from parley.cli.terminal.results import csv_text, write_answer, write_evaluation
from parley.v1.debate_pb2 import Debate, Outcome
from parley.v1.effect_pb2 import DECISION_RELATION_REVERSES, RelatedDecision
from parley.v1.evaluation_pb2 import (
    EVALUATION_DIMENSION_PERFORMANCE,
    EVALUATION_DIMENSION_SECURITY,
    DimensionAverage,
    DimensionScore,
    EvaluationOutcome,
    EvaluatorScores,
    FailedEvaluator,
)

JUDGED, ID = "deb-20260101-000000-aaaaaaaa", "deb-20260102-000000-bbbbbbbb"


def evaluation(reason: str = "sealed") -> Debate:
    scores = [
        DimensionScore(dimension=EVALUATION_DIMENSION_PERFORMANCE, score=4),
        DimensionScore(dimension=EVALUATION_DIMENSION_SECURITY, score=7.5, reason=reason),
    ]
    averages = [
        DimensionAverage(dimension=EVALUATION_DIMENSION_PERFORMANCE, average=4, evaluators=1),
        DimensionAverage(dimension=EVALUATION_DIMENSION_SECURITY, average=7.5, evaluators=1),
    ]
    outcome = EvaluationOutcome(
        debate_id=JUDGED,
        evaluators=[EvaluatorScores(agent_id="ada", scores=scores, overall=5.75)],
        averages=averages,
        overall=5.75,
        failed=[FailedEvaluator(agent_id="bo", reason="PROVIDER_AUTH", message="no key")],
    )
    return Debate(id=ID, answer="**5.8 of 10**", outcome=Outcome(description="5.8", evaluation=outcome))


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_csv_has_a_row_for_each_evaluator_and_dimension_and_for_each_average() -> None:
    head, *found = rows(csv_text(evaluation()))
    assert head == ["debate", "evaluation", "evaluator", "dimension", "score", "reason"]
    assert {tuple(row[:2]) for row in found} == {(JUDGED, ID)}
    cells = [tuple(row[2:]) for row in found]
    assert len(cells) == 2 * (7 + 1)
    assert ("ada", "security", "7.5", "sealed") in cells
    assert ("ada", "compliance", "", "") in cells, "what was not given is empty, not 0"
    assert ("ada", "overall", "5.75", "") in cells
    assert ("(average)", "security", "7.50", "") in cells
    assert ("(average)", "compliance", "", "") in cells
    assert cells[-1] == ("(average)", "overall", "5.75", "")


@pytest.mark.parametrize("reason", ['he said "no", twice', "two\nlines", "a,b;c", "é – 漢"])  # noqa: RUF001
def test_csv_is_quoted_so_that_any_reason_comes_back_as_it_was(reason: str) -> None:
    text = csv_text(evaluation(reason))
    assert text.endswith("\r\n")
    assert reason in {row[5] for row in rows(text)}


@pytest.mark.parametrize("reason", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "＝1"])  # noqa: RUF001
def test_a_reason_that_looks_like_a_formula_is_none_in_csv(reason: str) -> None:
    shown = reason.replace("\r", "\n")
    assert f"'{shown}" in {row[5] for row in rows(csv_text(evaluation(reason)))}


@pytest.mark.parametrize("hidden", ["\x1b[0m=1", "\u200b=1", "\x00=1", "\u202e=1"])
def test_a_formula_behind_what_nobody_sees_is_none_in_csv(hidden: str) -> None:
    assert "'=1" in {row[5] for row in rows(csv_text(evaluation(hidden)))}


def test_a_text_begins_no_cell_where_semicolons_separate() -> None:
    text = csv_text(evaluation("no; =1+1"))
    assert all(
        not cell.startswith("=") for row in csv.reader(io.StringIO(text), delimiter=";") for cell in row
    )


HOSTILE_PAGE = (
    "# Answer\n\nUse <img src=x onerror=alert(1)> and <b\u200b>.\n\n<script>alert(1)</script>\n\n"
    "![x](http://spy.example/x.png) [run](javascript:alert(1)) [good](https://a.example)\n\n[good]: javascript:alert(1)\n"
)
"""What a program that shows Markdown would run or fetch."""


@pytest.mark.parametrize("is_evaluation", [False, True])
def test_an_answer_in_a_file_has_no_html_no_image_and_no_link_that_runs(
    is_evaluation: bool, tmp_path: Path
) -> None:
    made, file = evaluation(), tmp_path / "x.md"
    made.answer = HOSTILE_PAGE
    if is_evaluation:
        write_evaluation(made, "markdown", file)
    else:
        write_answer(made, file)
    tokens = list(MarkdownIt("commonmark").parse(file.read_text()))
    inside = [each for token in tokens for each in (token, *(token.children or ()))]
    assert {each.type for each in inside} & {"html_block", "html_inline", "image"} == set()
    links = {str(each.attrs["href"]) for each in inside if each.type == "link_open"}
    assert links == {"https://a.example", "http://spy.example/x.png"}, "an image is a link to it"
    assert tokens[0].tag == "h1", "headings stay"


@pytest.mark.parametrize("to_file", [True, False])
def test_a_debate_ends_with_what_it_confirms_or_reverses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, to_file: bool
) -> None:
    related = RelatedDecision(debate_id=JUDGED, relation=DECISION_RELATION_REVERSES, reason="It is slow.")
    made = Debate(id=ID, answer="Kafka.", outcome=Outcome(description="Kafka.", related=[related]))
    write_answer(made, tmp_path / "answer.md" if to_file else None)
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == f"Reverses the decision of 1 January 1970 ({JUDGED}): It is slow."


def test_json_names_both_debates_and_who_failed(capsys: pytest.CaptureFixture[str]) -> None:
    write_evaluation(evaluation(), "json", None)
    found = json.loads(capsys.readouterr().out)
    assert (found["id"], found["debate_id"], found["overall"]) == (ID, JUDGED, 5.75)
    assert found["evaluators"][0]["scores"][1] == {"dimension": "security", "score": 7.5, "reason": "sealed"}
    assert found["failed"] == [{"agent_id": "bo", "reason": "PROVIDER_AUTH", "message": "no key"}]


def test_an_evaluation_is_written_where_it_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_evaluation(evaluation(), "csv", tmp_path / "deep" / "x.csv")
    assert (tmp_path / "deep" / "x.csv").read_bytes() == csv_text(evaluation()).encode()
    told = capsys.readouterr()
    assert told.out == ""
    assert f"Evaluation: {tmp_path / 'deep' / 'x.csv'}" in told.err
