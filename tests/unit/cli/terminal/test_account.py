"""What `--verbose` and the last line say of a debate: what it took, and how far the agents agreed."""

from datetime import UTC, datetime
from itertools import permutations

from google.protobuf.timestamp_pb2 import Timestamp

from parley.cli.terminal.account import account_lines, agreement_texts, news_lines, summary_line
from parley.cli.terminal.debate_overview import overview_lines
from parley.client import Debate
from parley.v1.agent_pb2 import Agent, PromptText, ToolCall
from parley.v1.critique_pb2 import Critique
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_COMPLETED,
    STOP_REASON_ALL_ROUNDS_COMPLETED,
    STOP_REASON_UNDISPUTED,
    Answer,
    Clarification,
    Contribution,
    DebateEstimate,
    DebateFailure,
    DebateSpec,
    DraftGroup,
    DraftGroups,
    Outcome,
    Participant,
    Question,
    QuestionAnswer,
    Questions,
    Reply,
    StopReason,
    Work,
)
from parley.v1.effect_pb2 import (
    DECISION_RELATION_CONFIRMS,
    DECISION_RELATION_OTHER_MATTER,
    DECISION_RELATION_REVERSES,
    RelatedDecision,
)
from parley.v1.panel_pb2 import EFFORT_QUICK, PanelSettings
from parley.v1.source_pb2 import Source, SourceUse


def proposal(agent: str, number: int) -> Contribution:
    work = Work(activity="proposal", agent_id=agent, round=number)
    return Contribution(work=work, reply=Reply(text="One will do."))


def debate(*groups: tuple[list[str], str], majority: bool = False) -> Debate:
    vote = DraftGroups(
        groups=[DraftGroup(agent_ids=agents, position=position) for agents, position in groups],
        majority=majority,
        certain=True,
    )
    return Debate(
        spec=DebateSpec(
            agents=[Participant(agent=Agent(id="ada"))], judge=Participant(agent=Agent(id="judge"))
        ),
        contributions=[proposal("ada", 1), proposal("ada", 2)],
        first_drafts=vote if groups else None,
        recalled_debate_ids=["deb-20260101-000000-abcdefgh"],
    )


def write_account(state: Debate) -> str:
    return "\n".join(account_lines(state))


def test_the_vote_over_the_first_drafts_stands_with_the_first_round() -> None:
    text = write_account(debate((["ada", "cy"], "Keep one."), (["bo"], ""), majority=True))
    assert (
        "  vote over the first drafts: 2 of 3 agree\n    ada, cy: Keep one.\n    bo: no position stated\nRound 2"
    ) in text


def test_a_vote_without_a_majority_says_so() -> None:
    text = write_account(debate((["ada"], "Keep one."), (["bo"], "Split it.")))
    assert "  vote over the first drafts: no majority\n    ada: Keep one.\n    bo: Split it.\n" in text


def test_without_a_vote_nothing_is_said_of_one() -> None:
    assert "vote" not in write_account(debate())


def test_past_debates_that_were_shown_are_named_before_the_rounds() -> None:
    assert "Past debates shown\n  deb-20260101-000000-abcdefgh\nRound 1\n" in write_account(debate())


def test_what_an_agent_looked_up_stands_below_its_contribution_tool_by_tool() -> None:
    state = debate()
    calls = [("file_read", False), ("list_files", False), ("file_read", False), ("file_read", True)]
    state.contributions[0].reply.tool_calls.extend(
        ToolCall(name=name, failed=failed) for name, failed in calls
    )
    assert "    looked up: file_read ×2, list_files, file_read (failed)\nRound 2\n" in write_account(state)  # noqa: RUF001


def test_nothing_is_said_of_tools_that_nobody_used() -> None:
    assert "looked up" not in write_account(debate())


def test_a_structured_contribution_is_told_as_people_read_it() -> None:
    state = debate()
    ballot = Work(activity="ballot", title="vote for the best", agent_id="ada", target_agent_id="bo")
    state.contributions.add(work=ballot, reply=Reply(text='{"choice": "bo"}', rendered="\nFor **bo**.\n"))
    assert "Answer\n  ada, vote for the best of bo: For **bo**.\n" in write_account(state)


def test_whoever_joined_is_told_with_the_prompts() -> None:
    state = debate()
    state.joined.add(id="cy", role="security")
    assert write_account(state).startswith(
        "Prompts\n  ada (): built-in\n  cy (security): built-in\n  judge (): built-in\n"
    )


def test_why_the_rounds_ended_stands_with_the_totals_also_where_all_were_held() -> None:
    state = debate()
    state.current_round, state.stop_explanation = 3, "all 3 rounds were held"
    assert "Totals\n  3 rounds, 0 calls, 0.0 s\n  ended: all 3 rounds were held\n" in write_account(state)


def test_a_summary_is_told_with_both_lengths_and_how_it_was_decided() -> None:
    state = debate()
    work = Work(
        activity="summary", agent_id="ada", round=2, summarized_characters=5200, summary_method="length-based"
    )
    state.contributions.add(work=work, reply=Reply(text="s" * 1200))
    assert "5,200 → 1,200 characters (length-based)" in write_account(state)


def test_why_the_rounds_ended_early_stands_with_the_totals() -> None:
    state = debate()
    state.current_round, state.rounds_ended_by = 2, "the agents agree"
    assert "Totals\n  2 rounds, 0 calls, 0.0 s\n  ended after round 2: the agents agree\n" in write_account(
        state
    )


def test_what_was_asked_before_the_rounds_and_what_a_person_said_is_told() -> None:
    state = debate()
    asking = Contribution(work=Work(activity="clarification", agent_id="ada"), reply=Reply(text="- Ten?"))
    state.contributions.insert(0, asking)
    questions = Questions(
        questions=[Question(id="1", agent_id="ada", text="Ten?"), Question(id="2", text="Why?")]
    )
    said = Answer(answers=[QuestionAnswer(question_id="1", text="No,\neleven.")])
    state.clarifications.extend(
        [Clarification(questions=questions, answer=said), Clarification(questions=questions)]
    )
    assert (
        "Clarifications\n  ada: Ten?\n    No, eleven.\n  Why?\n  ada: Ten?\n  Why?\n    went on without an answer\n"
    ) in write_account(state)
    assert "Before the rounds\n  ada, clarification: - Ten?\n" in write_account(state)
    assert "Answer\n" not in write_account(state)


def test_every_prompt_that_replaces_a_roles_is_told() -> None:
    state = debate()
    agent = state.spec.agents[0].agent
    agent.clarification_prompt.CopyFrom(PromptText(text="Ask.", source="/p/ask.md"))
    agent.summary_prompt.CopyFrom(PromptText(text="Cut.", source="/p/cut.md"))
    assert "  ada (): built-in; summaries: /p/cut.md; clarifications: /p/ask.md\n" in write_account(state)


def test_what_is_new_is_how_the_answer_stands_to_each_earlier_decision_in_a_line() -> None:
    march = Timestamp(seconds=int(datetime(2026, 3, 3, 23, 59, tzinfo=UTC).timestamp()))
    related = [
        RelatedDecision(
            debate_id="deb-1",
            decided_at=march,
            relation=DECISION_RELATION_REVERSES,
            reason="The load\nhas fallen.\x1b[2J",
        ),
        RelatedDecision(debate_id="deb-2", decided_at=march, relation=DECISION_RELATION_CONFIRMS),
        RelatedDecision(debate_id="deb-3", decided_at=march),
        RelatedDecision(
            debate_id="deb-4",
            decided_at=march,
            relation=DECISION_RELATION_OTHER_MATTER,
            reason="It is of another team.",
        ),
    ]
    assert list(news_lines(Debate(outcome=Outcome(related=related)))) == [
        "Reverses the decision of 3 March 2026 (deb-1): The load has fallen.",
        "Confirms the decision of 3 March 2026 (deb-2).",
        "Is about another matter than the decision of 3 March 2026 (deb-4): It is of another team.",
    ]
    assert list(news_lines(Debate())) == []


def test_the_last_lines_say_which_sources_were_cited_by_whom_and_which_do_not_exist() -> None:
    uses = [
        SourceUse(source=2, agent_id="bo", count=2),
        SourceUse(source=1, agent_id="ada", count=1),
        SourceUse(source=2, agent_id="ada", count=1),
        SourceUse(source=2, agent_id="bo", in_answer=True, count=1),
        SourceUse(source=1, in_answer=True, count=1),
        SourceUse(source=9, agent_id="bo", count=1),
    ]
    sources = [Source(number=number) for number in (1, 2, 3)]
    assert list(news_lines(Debate(sources=sources, source_uses=uses))) == [
        "Sources: 2 of 3 cited (S1 by ada and the answer, S2 by bo and ada); cited but missing: S9"
    ]
    assert list(news_lines(Debate(sources=sources, source_uses=uses[:1]))) == [
        "Sources: 1 of 3 cited (S2 by bo)"
    ]
    assert list(news_lines(Debate(source_uses=uses[-1:]))) == ["Sources: cited but missing: S9"]
    assert list(news_lines(Debate(sources=sources))) == []


def test_the_last_lines_name_only_a_few_of_many_sources() -> None:
    sources = [Source(number=number) for number in range(1, 41)]
    uses = [SourceUse(source=number, agent_id="ada", count=1) for number in range(1, 81)]
    (line,) = news_lines(Debate(sources=sources, source_uses=uses))
    assert line.startswith("Sources: 40 of 40 cited (S1 by ada, ")
    assert "S6 by ada, …); cited but missing: S41, " in line
    assert line.endswith("S46, …")


def test_calls_that_followed_the_answer_are_told_apart_since_the_answer_does_not_count_them() -> None:
    state = Debate(status=DEBATE_STATUS_COMPLETED, calls=15, estimate=DebateEstimate(max_calls=16))
    state.contributions.add(key="round/1/proposal/ada")
    assert summary_line(state).startswith("15 of at most 16 calls · ")
    state.contributions.add(key="after/grounding")
    assert summary_line(state).startswith("15 of at most 16 calls, 1 of them after the answer · ")


def test_the_last_line_says_what_an_undisputed_debate_saved() -> None:
    ended = Debate(
        status=DEBATE_STATUS_COMPLETED,
        stop_reason=STOP_REASON_UNDISPUTED,
        current_round=1,
        max_rounds=3,
        calls=16,
        estimate=DebateEstimate(min_calls=14, max_calls=42),
    )
    line = summary_line(ended)
    assert line.startswith("undisputed after round 1 of 3 · 16 of at most 42 calls")
    ended.calls = 45
    assert "45 calls, 42 expected" in summary_line(ended), "more than was expected: nothing was saved"


def test_the_last_line_says_that_drafts_alone_were_asked_for() -> None:
    quick = DebateSpec(panel=PanelSettings(effort=EFFORT_QUICK))
    state = Debate(spec=quick, stop_reason=STOP_REASON_ALL_ROUNDS_COMPLETED, calls=5)
    assert summary_line(state).startswith("drafts alone · 5 calls")


def test_an_overview_calls_it_one_too() -> None:
    assert any(
        "a demonstration" in line for line in overview_lines(Debate(demonstration=True), "", alone=False)
    )
    assert not any("demonstration" in line for line in overview_lines(Debate(), "", alone=False))


def test_an_overview_says_of_the_judge_one_thing_a_line() -> None:
    state = Debate(judge_reason="it has the default routes; no agent's model is of its family (claude)")
    state.spec.judge.agent.id = "judge"
    lines = list(overview_lines(state, "", alone=False))
    place = lines.index("Judge      judge")
    assert lines[place + 1 : place + 3] == [
        "           it has the default routes",
        "           no agent's model is of its family (claude)",
    ]


def test_an_overview_lists_the_failures_of_agents_and_those_of_services_that_no_warning_tells() -> None:
    state = Debate(warnings=["past debates could not be recalled: memory is away"])
    state.failures.add(work=Work(activity="recall"), reason="MEMORY_AWAY", message="memory is away")
    state.failures.add(work=Work(activity="record"), reason="RATINGS_AWAY", message="ratings are away")
    state.failures.add(work=Work(activity="assessment"), reason="CONVERGENCE_AWAY")
    state.failures.add(work=Work(activity="proposal", agent_id="ada", round=1), reason="X", message="No.")
    assert list(overview_lines(state, "", alone=False))[-4:] == [
        "Warning    past debates could not be recalled: memory is away",
        "Failed     record: RATINGS_AWAY: ratings are away",
        "Failed     assessment: CONVERGENCE_AWAY: ",
        "Failed     ada in round 1 proposal: X: No.",
    ]


def test_an_overview_says_a_warning_once_though_every_round_gave_it() -> None:
    lines = list(overview_lines(Debate(warnings=["one family", "late", "one family"]), "", alone=False))
    assert lines[-2:] == ["Warning    one family", "Warning    late"]


def test_an_overview_says_why_a_debate_failed_that_no_failure_of_an_agent_says() -> None:
    state = Debate(failure=DebateFailure(reason="INTERNAL", message="The store is full."))
    assert "Why        INTERNAL: The store is full." in list(overview_lines(state, "", alone=False))


def test_why_the_rounds_ended_is_told_in_few_words_for_every_reason() -> None:
    assert "all rounds completed" in summary_line(
        Debate(stop_reason=STOP_REASON_ALL_ROUNDS_COMPLETED, calls=2)
    )
    told = {summary_line(Debate(stop_reason=each, calls=2)) for each in StopReason.values()}
    assert len(told) == len(StopReason.values()), "each in words of its own, none for what is not known"


def critique(number: int, critic: str, author: str, agrees: bool | None) -> Contribution:
    work = Work(agent_id=critic, activity="critique", round=number, target_agent_id=author)
    return Contribution(work=work, reply=Reply(text="…", critique=Critique(agrees=agrees)))


def test_who_agrees_with_whom_is_what_critics_of_the_last_round_said() -> None:
    debate = Debate(
        contributions=[
            critique(1, "ada", "bo", agrees=True),
            critique(2, "bo", "ada", agrees=True),
            critique(2, "cy", "ada", agrees=True),
            critique(2, "ada", "bo", agrees=False),
            critique(2, "ada", "cy", agrees=None),
        ],
        calls=5,
    )
    assert list(agreement_texts(debate)) == ["in round 2 bo and cy agreed with ada"]
    assert summary_line(debate).startswith("in round 2 bo and cy agreed with ada · 5 calls")


def test_all_and_none_are_said_in_a_word() -> None:
    pairs = list(permutations(("ada", "bo", "cy"), 2))
    for agrees, told in ((True, "every critic agreed"), (False, "no critic agreed")):
        debate = Debate(contributions=[critique(1, *pair, agrees=agrees) for pair in pairs])
        assert list(agreement_texts(debate)) == [f"in round 1 {told}"]


def test_many_are_counted() -> None:
    pairs = list(permutations("abcd", 2))
    made = [critique(1, *pair, agrees=place > 0) for place, pair in enumerate(pairs)]
    assert list(agreement_texts(Debate(contributions=made))) == ["in round 1 11 of 12 critiques agreed"]


def test_what_critics_said_stands_behind_the_first_drafts_and_nothing_where_nothing_was_said() -> None:
    drafts = DraftGroups(groups=[DraftGroup(agent_ids=["ada", "bo"])], majority=True)
    debate = Debate(first_drafts=drafts, contributions=[critique(3, "ada", "bo", agrees=False)])
    assert list(agreement_texts(debate)) == [
        "2 of 2 first drafts agree (ada, bo)",
        "in round 3 no critic agreed",
    ]
    assert not list(agreement_texts(Debate(contributions=[critique(1, "ada", "bo", agrees=None)])))
