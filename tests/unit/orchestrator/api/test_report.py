"""The report of a debate, as a reader of Markdown sees it."""

import tracemalloc
from typing import Any

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.reading import report_responses
from parley.orchestrator.api.report import render_report, report_pieces
from parley.orchestrator.formats.panel import V1
from parley.orchestrator.log.envelope import create_event
from parley.v1.agent_pb2 import PromptText, ToolCall, Usage
from parley.v1.critique_pb2 import ISSUE_STATUS_NOT_ANSWERED, ISSUE_STATUS_REJECTED, IssueAnswer
from parley.v1.debate_pb2 import (
    Answer,
    Clarifications,
    ContextDocument,
    DebateFailure,
    DraftGroup,
    DraftGroups,
    Intervention,
    Question,
    QuestionAnswer,
    Questions,
    Reply,
    Requirement,
    Work,
)
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointOpened,
    DebateFailed,
    DraftsGrouped,
    Event,
    Intervened,
    Recalled,
    RequirementsListed,
    StepSucceeded,
    Warned,
)
from tests.support.interventions import intervention
from tests.support.orchestration import with_fields
from tests.unit.orchestrator.api.reports import (
    ANSWERING,
    BEGUN,
    CLAIMED,
    CRITIQUE,
    PROPOSAL,
    SYNTHESIS,
    WHOLE,
    cells,
    outline,
    report,
)
from tests.unit.orchestrator.made_logs import (
    ADA,
    BO,
    CREATED,
    key_of,
    log,
    make_created,
    make_failure,
    make_success,
)


def test_a_report_reads_from_the_answer_to_the_totals() -> None:
    assert outline(report(*WHOLE)) == [
        "# Which store?",
        "## Answer",
        "### Implementation",
        "### Recommendations",
        "### Requirements",
        "### Trade-offs",
        "### Open questions",
        "### Scores",
        "## Rounds",
        "### Round 1",
        "#### Proposals",
        "##### Ada",
        "#### Critiques",
        "##### Bo on Ada",
        "#### Refinements",
        "##### Ada",
        "## About this debate",
        "### Agents",
        "### Totals",
    ]


def test_a_contribution_stands_with_what_it_took() -> None:
    assert (
        "##### Bo on Ada\n\n"
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
        "- **Not met:** Two regions. (a must)",
        "- How many writers?",
        "- **Confidence:** By the judge's own word 40 of 100, or more: at most 40 counts while a must is not met.",
    ):
        assert said in text
    assert [each for each in cells(text) if each in {"9", "7.5"}] == ["9", "7.5"]


@pytest.mark.parametrize(("most", "shown"), [(42, "4 of at most 42"), (4, "4"), (3, "4")])
def test_totals_say_how_many_calls_were_expected_at_most(most: int, shown: str) -> None:
    debate = fold(log(*WHOLE))
    debate.estimate.max_calls = most
    totals = cells(render_report(debate, V1))
    assert totals[totals.index("Model calls") + 1] == shown


def test_totals_count_the_judge_summaries_and_failed_calls() -> None:
    summary = Work(activity="summary", agent_id="ada", round=1)
    text = report(*WHOLE[:-1], make_success(summary, "Short."), make_failure(CRITIQUE, attempt=2), WHOLE[-1])

    totals = cells(text)
    assert totals[totals.index("Model calls") + 1] == "6"
    assert totals[totals.index("Tokens in") + 1] == "53"
    assert totals[totals.index("Tokens out") + 1] == "25"
    assert totals[totals.index("Cost") + 1] == "0.000507 US dollars"
    assert totals[totals.index("Duration") + 1] == "10.0 s"


def test_a_debate_that_cost_nothing_says_so() -> None:
    free = Usage(input_tokens=1, output_tokens=1, requests=1, cost_micros=0)
    totals = cells(report(*BEGUN, make_success(PROPOSAL, "Use A.", usage=free)))
    assert totals[totals.index("Cost") + 1] == "nothing"


def test_a_cost_that_is_not_known_is_not_made_up() -> None:
    text = report(
        *BEGUN, make_success(PROPOSAL, "Use A.", usage=Usage(input_tokens=1, output_tokens=1, requests=1))
    )

    totals = cells(text)
    assert totals[totals.index("Cost") + 1] == "not known"


def test_agents_are_told_with_role_model_and_prompt() -> None:
    spec = make_created(
        agents=(
            with_fields(ADA, system_prompt=PromptText(text="Be brief.", source="prompts/ada.md")),
            BO,
        ),
    )
    text = report(create_event("created", spec), make_success(PROPOSAL, "Use A."))

    row = cells(text)[6:12]
    assert row == ["Ada", "ada", "architect", "small (openai-small)", "prompts/ada.md", "built-in"]
    assert cells(text)[12:16] == ["Bo", "bo", "security", "no agent yet; asked of the default routes"]


def test_an_unfinished_debate_says_so() -> None:
    text = report(*BEGUN, make_success(PROPOSAL, "Use A."))

    assert "- Status: running" in text
    assert "There is no answer yet." in text
    assert "> Use A." in text


def test_a_debate_without_a_single_contribution_has_a_report() -> None:
    assert "- Status: pending" in report(CREATED)
    assert "Nothing was contributed." in report(*BEGUN)


def test_a_failed_debate_names_reason_phase_and_agent() -> None:
    failure = DebateFailure(
        reason="CALL_TIMEOUT", message="no answer", agent_id="ada", phase="round 1 proposal"
    )
    text = report(*BEGUN, make_failure(PROPOSAL, "no | answer"), DebateFailed(failure=failure))

    assert "- Failed in round 1 proposal, agent Ada: CALL\\_TIMEOUT: no answer" in text
    assert "There is no answer." in text
    assert cells(text)[cells(text).index("round 1 proposal") :][:5] == [
        "round 1 proposal",
        "Ada",
        "1",
        "CALL_TIMEOUT",
        "no | answer",
    ]


def test_a_judge_answer_that_could_not_be_used_is_shown_as_it_came() -> None:
    failure = DebateFailure(reason="INVALID", message="not of its shape")
    text = report(
        *BEGUN, ANSWERING, make_success(SYNTHESIS, '{"description": 1}'), DebateFailed(failure=failure)
    )

    assert "There is no answer." in text
    assert '> {"description": 1}' in text


def test_a_structured_answer_is_shown_as_its_phase_renders_it() -> None:
    work = Work(activity="assessment", title="scores for the work", agent_id="judge", round=1)
    step = StepSucceeded(work=work, digest="d", reply=Reply(text='{"A": 1}', rendered="- agent A: 1 of 100"))
    text = report(*BEGUN, create_event("1/assessment/judge", step, 1))

    assert "> - Ada: 1 of 100" in text
    assert '{"A": 1}' not in text


def test_warnings_interventions_context_and_past_debates_are_told() -> None:
    facts_given = {"team": "Payments _and_ Search", "date": "2026-11-25"}
    context = (ContextDocument(path="docs/load_test.md", text="Text."),)
    spec = make_created(context=context, environment=facts_given)
    made = (
        intervention("guide", text="Mind the budget."),
        intervention("mute", agent_id="bo"),
        intervention("continue_debate"),
        intervention("cancel", text="enough"),
        intervention("approve", approved=True, text="well done"),
        intervention("approve"),
        Intervened(
            intervention=Intervention(
                answer=Answer(text="Both:", answers=[QuestionAnswer(question_id="q1", text="ten")])
            )
        ),
    )
    facts = (Recalled(debate_ids=["deb-1"]), Warned(message="Bo is late."))
    text = report(create_event("created", spec), *facts, *made)

    assert "### Facts given with the question\n\n- date: 2026-11-25\n- team: Payments _and_ Search\n" in text
    assert "- docs/load\\_test.md (5 characters)" in text
    assert "- deb-1" in text
    assert "- Bo is late." in text
    assert "- guide: Mind the budget.\n- mute Bo\n- continue\n- cancel: enough\n" in text
    assert "- approve: yes\n  well done\n- approve: no\n- answer: Both:\n  q1: ten" in text


def test_a_warning_that_every_round_gave_is_told_once() -> None:
    late = Warned(message="Bo is late.")
    text = report(*BEGUN, late, Warned(message="Cy is away."), late)

    assert text.count("- Bo is late.\n") == text.count("- Cy is away.\n") == 1


def test_an_intervention_of_a_newer_version_does_not_keep_the_report_back() -> None:
    newer = Intervened(intervention=Intervention.FromString(b"\xfa\x06\x00"))

    assert "- something that this version does not know" in report(*BEGUN, newer)


def test_the_vote_over_the_first_drafts_is_told() -> None:
    groups = [DraftGroup(agent_ids=["ada", "bo"], position="A."), DraftGroup(agent_ids=["judge"])]
    text = report(*BEGUN, DraftsGrouped(drafts=DraftGroups(groups=groups, majority=True, certain=True)))

    assert "2 of 3 took the same position." in text
    assert "- Ada and Bo: A." in text


def test_a_vote_over_the_first_drafts_that_is_not_certain_is_not_told() -> None:
    groups = [DraftGroup(agent_ids=["ada", "bo"], position="A.")]
    text = report(*BEGUN, DraftsGrouped(drafts=DraftGroups(groups=groups, majority=True)))

    assert "first drafts" not in text


def test_what_is_required_is_listed_before_the_rounds() -> None:
    listed = [Requirement(text="It floats.", hard=True), Requirement(text="It is *blue*.")]
    text = report(*BEGUN, RequirementsListed(requirements=listed))

    assert "## Requirements\n\n- R1 (a must): It floats.\n- R2: It is *blue*.\n" in text


def test_a_refinement_is_shown_with_what_its_author_says_of_each_issue() -> None:
    said = [
        IssueAnswer(critic_agent_id="bo", number=1, status=ISSUE_STATUS_REJECTED, reason="It is slow."),
        *(
            IssueAnswer(critic_agent_id="bo", number=number, status=ISSUE_STATUS_NOT_ANSWERED)
            for number in (2, 3)
        ),
    ]
    reply = Reply(text="Use one.\nB.1: no.", rendered="Use one.", issue_answers=said)
    work = Work(activity="refinement", agent_id="ada", round=1)
    text = report(*BEGUN, create_event(key_of(work), StepSucceeded(work=work, reply=reply), 1))

    assert (
        "> Use one.\n\nAnswers to issues:\n\n- Issue 1 of Bo, not taken up: It is slow.\n"
        "- Not answered: issue 2 of Bo and issue 3 of Bo\n" in text
    )


def test_a_debate_of_a_format_that_is_not_known_here_has_a_report() -> None:
    text = report(*WHOLE, debate_format=None)

    assert outline(text)[1:] == [
        "## Answer",
        "### Scores",
        "## Rounds",
        "### Round 1",
        "#### Proposal",
        "##### Ada",
        "#### Critique",
        "##### Bo on Ada",
        "#### Refinement",
        "##### Ada",
        "## About this debate",
        "### Agents",
        "### Totals",
    ]
    assert "> Use an embedded store." in text


def test_what_an_agent_looked_up_stands_above_what_it_wrote() -> None:
    calls = (
        ToolCall(name="context_search", arguments='{"query": "write *speed*"}', characters=90),
        ToolCall(name="file_read", arguments='{"path": "docs/a.md", "from": 3}', characters=12),
        ToolCall(name="file_read", arguments='{"path": "gone.md"}', failed=True),
        ToolCall(name="list_files", arguments="{}"),
        ToolCall(name="list_files", arguments=""),
    )
    step = StepSucceeded(work=PROPOSAL, digest="digest", reply=Reply(text="Use A.", tool_calls=calls))
    text = report(*BEGUN, create_event("1/proposal/ada", step, 1))
    (line,) = [each for each in text.splitlines() if each.startswith("Looked up: ")]
    assert line == (
        'Looked up: context\\_search "write \\*speed\\*", file\\_read docs/a.md 3, file\\_read gone.md (failed), '
        "list\\_files, list\\_files"
    )
    assert text.index(line) < text.index("> Use A.")


def test_nothing_is_said_of_tools_that_nobody_used() -> None:
    assert "Looked up" not in report(*WHOLE)


def test_a_report_is_streamed_without_being_held_as_a_whole() -> None:
    works = [Work(activity="proposal", agent_id="ada", round=number) for number in range(1, 31)]
    debate = fold(log(*BEGUN, *(make_success(each, "word " * 40_000) for each in works)))
    tracemalloc.start()
    try:
        sizes = [len(each.markdown) for each in report_responses(report_pieces(debate, V1))]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(sizes) > 6_000_000
    assert len(set(sizes[:-1])) == 1, "pieces of one size"
    assert peak < sum(sizes) / 3


def test_a_demonstration_is_marked_at_the_top() -> None:
    marked = report(make_created(demonstration=True))
    assert "- Demonstration: a very small model wrote this" in marked.partition("## Answer")[0]
    assert "Demonstration" not in report(*WHOLE)


ASKING = Work(activity="clarification", agent_id="ada")
ASKED = Questions(
    questions=[
        Question(id="ada-1", agent_id="ada", text="How *many*?"),
        Question(id="bo-1", agent_id="bo", text="Why?"),
    ]
)
SAID = Answer(text="Soon.", answers=[QuestionAnswer(question_id="ada-1", text="# Ten")])


def make_clarification(number: int, intervention: Intervention) -> tuple[Event, ...]:
    key = f"clarify/{number}"
    return (
        create_event(key, CheckpointOpened(questions=ASKED), 1),
        create_event(key, CheckpointClosed(intervention=intervention), 1),
    )


def test_what_a_person_was_asked_and_what_they_said_stands_before_the_rounds() -> None:
    continued = intervention("continue_debate").intervention
    events: tuple[Any, ...] = (
        CREATED,
        CLAIMED,
        make_success(ASKING, "- How *many*?"),
        *make_clarification(1, Intervention(answer=SAID)),
        *make_clarification(2, continued),
        *WHOLE[2:],
    )
    text = report(*events)
    told = outline(text)
    assert told[told.index("## Clarifications") :][:3] == [
        "## Clarifications",
        "## Before the rounds",
        "### Clarification: Ada",
    ]
    assert (
        "Ada asked: How \\*many\\*?\n\n> **Ten**\n\nBo asked: Why?\n\nIt was not answered by itself." in text
    )
    assert "To all questions, the person said:\n\n> Soon.\n" in text
    assert "The person had the debate go on without an answer." in text
    assert text.count("How \\*many\\*?") == 2


def test_which_prompt_for_clarifications_was_used_is_told_where_agents_may_ask() -> None:
    assert "Clarification prompt" not in cells(report(*WHOLE))
    ada = with_fields(ADA, clarification_prompt=PromptText(text="Ask.", source="/p/ask.md"))
    spec = make_created(agents=(ada, BO), clarifications=Clarifications())
    told = cells(report(create_event("created", spec)))
    assert told[6] == "Clarification prompt"
    assert [told[row * 7 + 6] for row in (1, 2, 3)] == ["/p/ask.md", "built-in", "built-in"]
