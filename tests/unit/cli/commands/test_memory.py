"""`parley memory`: what is found, shown and forgotten, and what is said if there is nothing."""

import json
from pathlib import Path

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from rich.cells import cell_len

from parley.cli.__main__ import run
from parley.cli.terminal.memories import confidence_text
from parley.v1.critique_pb2 import ISSUE_STATUS_REJECTED, Issue
from parley.v1.effect_pb2 import (
    DECISION_RELATION_OTHER_MATTER,
    DECISION_RELATION_REVERSES,
    DecisionConfidence,
    RelatedDecision,
)
from parley.v1.memory_pb2 import (
    FLIP_OUTCOME_FLIP,
    FLIP_OUTCOME_NO_FLIP,
    FLIP_OUTCOME_UNKNOWN,
    MOMENT_KIND_LONE_DISSENTER_WON,
    MOMENT_KIND_REVERSAL,
    CritiquePattern,
    FlipOutcome,
    FlipSettlement,
    GetRecordResponse,
    LedgerPosition,
    Moment,
    PastDebate,
    Relevance,
    StandChange,
)
from parley.v1.voting_pb2 import VOTE_STRENGTH_MODERATE
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.terminal import on_terminal

KAFKA = "deb-20260301-101112-aaaaaaaa"
PRICES = "deb-20260302-101112-bbbbbbbb"
LONG = "Use Kafka for orders, since it keeps their order. " * 60
"""3,000 characters, as conclusions have them."""


def remembered(debate_id: str = KAFKA, conclusion: str = LONG, domain: str = "data") -> GetRecordResponse:
    """All that a debate can leave."""
    debate = PastDebate(
        debate_id=debate_id,
        question="Kafka or RabbitMQ for orders?",
        conclusion=conclusion,
        domain=domain,
        concluded_at=Timestamp(seconds=1_772_366_400),
        strength=VOTE_STRENGTH_MODERATE,
        confidence=DecisionConfidence(percent=83.5, votes=2, votes_cast=3),
        relevance=Relevance(similarity_percent=48.7),
    )
    debate.dissents.add(agent_id="cy", text="It is hard to run. " * 10)
    debate.dissents.add(agent_id="di", text="Nobody knows it.")
    debate.evidence.add(text="Kafka keeps order in a partition.", source="docs/kafka.md")
    found = GetRecordResponse(debate=debate)
    found.stands.add(agent_id="ada", agent_name="Ada", text="Use Kafka.", for_decision=True)
    found.stands.add(agent_id="cy", text="Use RabbitMQ.", for_decision=False)
    issue = Issue(number=1, text="No figures.", severity=7)
    found.issues.add(
        critic_agent_id="ada",
        target_agent_id="cy",
        issue=issue,
        status=ISSUE_STATUS_REJECTED,
        reason="They are in the annex.",
    )
    return found


@pytest.fixture
def at(orchestrator: ScriptedOrchestrator, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.delenv("COLUMNS", raising=False)
    orchestrator.memories = {KAFKA: remembered(), PRICES: remembered(PRICES, "Raise them.", "sales")}
    return ["--server", orchestrator.address]


def test_a_search_shows_each_debate_short_with_date_strength_confidence_and_dissent(
    at: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["memory", "search", "Kafka?", *at]) == 0
    said = capsys.readouterr()
    assert said.out.split("\n\n")[0].splitlines() == [
        "1. Kafka or RabbitMQ for orders?",
        "   2026-03-01, moderate agreement, 84 % sure (2 of 3 votes), 49 % alike",
        "   Use Kafka for orders, since it keeps their order. Use Kafka for orders, since",
        "   it keeps their order. Use Kafka for orders, since it keeps their order. Use",
        "   Kafka for orders, since it keeps their order. Use Kafka for orders, since …",
        "   Against it: cy: It is hard to run. It is hard to run. It is … (and 1 more)",
        f"   {KAFKA}",
    ]
    assert said.out.split("\n\n")[1].startswith("2. ")
    assert said.err == f"All that is remembered of one: parley memory show {KAFKA} --server {at[1]}\n"


@pytest.mark.parametrize(
    "text", [LONG, "kafka" * 600, "注文には何を使うべきでしょうか。" * 200, "# A\n\n* b\n" * 300]
)
def test_no_line_of_a_search_is_wider_than_the_terminal(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    found = remembered(conclusion=text)
    found.debate.question = text
    found.debate.dissents[0].text = text
    orchestrator.memories = {KAFKA: found}
    assert run(["memory", "search", "Kafka?", *at]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9
    assert max(map(cell_len, lines)) <= 80


@pytest.mark.parametrize(
    ("conclusion", "shown"),
    [
        (
            "## Decision\n\n**Raise** them,\nsee `prices.yaml`.\n\n- in spring",
            "Decision Raise them, see prices.yaml. in spring",
        ),
        ("```\nx = 1\n```", "``` x = 1 ```"),
        ("a &#x202e;b", "a b"),
    ],
)
def test_the_beginning_of_a_conclusion_is_words_without_markup(
    at: list[str],
    orchestrator: ScriptedOrchestrator,
    capsys: pytest.CaptureFixture[str],
    conclusion: str,
    shown: str,
) -> None:
    orchestrator.memories = {KAFKA: remembered(conclusion=conclusion)}
    assert run(["memory", "search", "Kafka?", *at]) == 0
    assert capsys.readouterr().out.splitlines()[2] == f"   {shown}"


def test_a_debate_of_which_little_is_known_is_shown_without_gaps(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = PastDebate(debate_id=KAFKA, question="One or two?", conclusion="One.")
    bare.concluded_at.CopyFrom(Timestamp(seconds=1_772_366_400))
    orchestrator.memories = {KAFKA: GetRecordResponse(debate=bare)}
    run(["memory", "search", "One?", *at])
    assert capsys.readouterr().out.splitlines()[1] == "   2026-03-01, 0 % alike"
    run(["memory", "show", KAFKA, *at])
    assert capsys.readouterr().out.splitlines()[3:] == ["", "One."]


def test_no_decision_is_called_certain() -> None:
    assert confidence_text(DecisionConfidence(percent=99.7)) == "over 99 % sure"
    assert confidence_text(DecisionConfidence(percent=0.3)) == "under 1 % sure"


def test_that_an_earlier_decision_is_reversed_is_said_with_its_date_and_why(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    found = remembered(conclusion="Use RabbitMQ.")
    found.debate.related.add(
        debate_id=PRICES,
        decided_at=Timestamp(seconds=1_772_366_400),
        decision="Use Kafka.",
        relation=DECISION_RELATION_REVERSES,
        reason="The team is smaller now.",
    )
    found.debate.related.insert(
        0,
        RelatedDecision(
            debate_id="deb-2",
            decided_at=Timestamp(seconds=1_772_366_400),
            decision="Use paper.",
            relation=DECISION_RELATION_OTHER_MATTER,
        ),
    )
    found.debate.related.add(debate_id="deb-1", decided_at=Timestamp(seconds=1_772_366_400))
    orchestrator.memories = {KAFKA: found}
    assert run(["memory", "search", "Kafka?", *at]) == 0
    assert capsys.readouterr().out.splitlines()[4:6] == [
        f"   Reverses the decision of 2026-03-01 ({PRICES})",
        "   Is about the decision of 2026-03-01 (deb-1)",
    ]
    assert run(["memory", "show", KAFKA, *at]) == 0
    shown = capsys.readouterr().out
    assert (
        f"- Reverses the decision of 2026-03-01 ({PRICES}): Use Kafka. Why: The team is smaller now.\n"
        in shown
    )
    assert "- Is about another matter than the decision of 2026-03-01 (deb-2): Use paper.\n" in shown


def test_a_stand_is_shown_with_the_first_one_of_its_agent_if_that_was_another(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    found = remembered()
    found.stands[0].first_text = "Use RabbitMQ."
    found.stands[0].first_for_decision = False
    found.stands[1].first_text = found.stands[1].text
    orchestrator.memories = {KAFKA: found}
    assert run(["memory", "show", KAFKA, *at]) == 0
    shown = capsys.readouterr().out
    assert "- Ada (for the decision): Use Kafka. At first (against it): Use RabbitMQ.\n" in shown
    assert "- cy (against it): Use RabbitMQ.\n" in shown


def test_a_limit_and_a_domain_are_passed_on(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["memory", "search", "Kafka?", "--limit", "1", "--json", *at]) == 0
    assert [each["debate_id"] for each in json.loads(capsys.readouterr().out)] == [KAFKA]
    assert run(["memory", "search", "Kafka?", "--domain", "sales", "--json", *at]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["debate_id"], found["strength"], found["conclusion"]) == (PRICES, "moderate", "Raise them.")


def moment(number: int) -> Moment:
    """A moment of either kind."""
    found = Moment(
        kind=MOMENT_KIND_REVERSAL if number else MOMENT_KIND_LONE_DISSENTER_WON,
        debate_id=f"deb-{number}",
        concluded_at=Timestamp(seconds=1_772_366_400),
        text="At first Ada alone stood for “Use Kafka”, which was decided for;\n2 of 3 agents stood for \x1b “Wait”.",
    )
    if number:
        found.earlier_debate_id = KAFKA
    return found


def test_moments_are_shown_with_their_day_kind_and_debates(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.moments = [moment(number) for number in range(3)]
    assert run(["memory", "moments", *at]) == 0
    first, second, _ = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert first.splitlines() == [
        "2026-03-01  lone dissenter won",
        "   At first Ada alone stood for “Use Kafka”, which was decided for; 2 of 3",
        "   agents stood for “Wait”.",
        "   deb-0",
    ]
    assert second.splitlines()[0] == "2026-03-01  reversal"
    assert second.splitlines()[-1] == f"   deb-1, reverses {KAFKA}"
    assert run(["memory", "moments", "--kind", "reversal", "--limit", "1", "--json", *at]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["debate_id"], found["kind"]) == ("deb-1", "reversal")


def test_that_no_moment_is_known_is_said(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["memory", "moments", *at]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err.partition(":")[0]) == ("", "No moment is known")


def pattern(number: int) -> CritiquePattern:
    """A kind of issue with all that is known of it."""
    found = CritiquePattern(
        pattern_id=f"p{number}",
        domain="data",
        examples=["The retry has no limit. " * 10, "It retries for ever.", "Nothing ends the retry."],
        debates=3,
        raised=7,
        taken_up=5,
        severity=6.4,
        latest_at=Timestamp(seconds=1_772_366_400),
        similarity_percent=48.7,
    )
    found.critics.add(agent_id="cy", raised=4)
    found.critics.add(agent_id="ada", raised=3)
    return found


def test_kinds_of_issue_are_shown_with_examples_who_raises_them_and_how_often_they_are_taken_up(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.patterns = [pattern(number) for number in range(3)]
    orchestrator.patterns[2].CopyFrom(CritiquePattern(examples=["No."], debates=1, raised=1))
    assert run(["memory", "patterns", *at]) == 0
    first, _, bare = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert first.splitlines() == [
        "1. The retry has no limit. The retry has no limit. The retry has no limit. The",
        "   retry has no limit. The retry has no limit. The retry has no limit. The …",
        "   raised 7 times in 3 debates, taken up 5 times, severity 6.4, 49 % alike",
        "   Also: It retries for ever.",
        "   Also: Nothing ends the retry.",
        "   By cy (4), ada (3); data, 2026-03-01",
    ]
    assert bare.splitlines()[:2] == ["3. No.", "   raised once in 1 debate, never taken up"]
    assert run(["memory", "patterns", "retries", "--limit", "1", "--json", *at]) == 0
    assert [each["pattern_id"] for each in json.loads(capsys.readouterr().out)] == ["p0"]


def test_that_no_kind_of_issue_is_known_is_said(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["memory", "patterns", "--taken-up", *at]) == 0
    assert capsys.readouterr().err == ("No kind of issue is known there: debates raise them in critiques.\n")


def position(agent: str = "ada", *changes: StandChange) -> LedgerPosition:
    return LedgerPosition(
        agent_id=agent,
        agent_name=agent.title(),
        debate_id=PRICES,
        question="Kafka or RabbitMQ for orders?",
        domain="data",
        concluded_at=Timestamp(seconds=1_772_452_800),
        stand="Use RabbitMQ.",
        for_decision=True,
        changes=changes,
    )


def change(outcome: FlipOutcome.ValueType, settlement: FlipSettlement | None = None) -> StandChange:
    return StandChange(
        earlier_debate_id=KAFKA,
        earlier_concluded_at=Timestamp(seconds=1_772_366_400),
        earlier_stand="Use Kafka.",
        outcome=outcome,
        settlement=settlement,
    )


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        (change(FLIP_OUTCOME_NO_FLIP), []),
        (
            change(FLIP_OUTCOME_UNKNOWN),
            [f"Perhaps a flip, from 2026-03-01 ({KAFKA}): Use Kafka."],
        ),
        (
            change(FLIP_OUTCOME_FLIP),
            [
                f"Flip from 2026-03-01 ({KAFKA}): Use Kafka.",
                "Open: no later decision and no feedback has settled it",
            ],
        ),
        (
            change(
                FLIP_OUTCOME_FLIP,
                FlipSettlement(
                    debate_id="deb-9", concluded_at=Timestamp(seconds=1_772_539_200), took_later_side=True
                ),
            ),
            [
                f"Flip from 2026-03-01 ({KAFKA}): Use Kafka.",
                "Settled on 2026-03-03 by deb-9, for the later side",
            ],
        ),
        (
            change(
                FLIP_OUTCOME_FLIP,
                FlipSettlement(
                    debate_id=PRICES, concluded_at=Timestamp(seconds=1_772_452_800), approved=True
                ),
            ),
            [
                f"Flip from 2026-03-01 ({KAFKA}): Use Kafka.",
                f"Settled on 2026-03-02 by {PRICES}, for the earlier side, and found good",
            ],
        ),
    ],
    ids=("kept", "unknown", "open", "settled", "settled by feedback"),
)
def test_where_an_agent_stood_is_shown_with_the_side_it_left_and_what_settled_that(
    at: list[str],
    orchestrator: ScriptedOrchestrator,
    capsys: pytest.CaptureFixture[str],
    changed: StandChange,
    shown: list[str],
) -> None:
    orchestrator.positions = [position("ada", changed)]
    assert run(["memory", "positions", *at]) == 0
    assert capsys.readouterr().out.rstrip().splitlines() == [
        "1. Ada (for the decision): Use RabbitMQ.",
        "   2026-03-02, data: Kafka or RabbitMQ for orders?",
        *(f"   {each}" for each in shown),
        f"   {PRICES}",
    ]


def test_stands_are_listed_of_one_agent_or_only_flips_up_to_a_limit(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    flip = change(FLIP_OUTCOME_FLIP)
    orchestrator.positions = [
        position(agent, *changes) for agent in ("ada", "bo") for changes in ((), (flip,))
    ]

    def list_agents(*options: str) -> list[str]:
        assert run(["memory", "positions", "--json", *options, *at]) == 0
        return [each["agent_id"] for each in json.loads(capsys.readouterr().out)]

    assert list_agents() == ["ada", "ada", "bo", "bo"]
    assert list_agents("--limit", "3") == ["ada", "ada", "bo"]
    assert list_agents("--flips") == ["ada", "bo"]
    assert list_agents("--agent", "bo", "--flips") == ["bo"]
    assert run(["memory", "positions", "--agent", "cy", "--flips", *at]) == 0
    assert capsys.readouterr().err == "No flip is known of that agent.\n"
    orchestrator.positions = []
    assert run(["memory", "positions", *at]) == 0
    assert capsys.readouterr().err == "No stand is known yet.\n"


def test_what_to_do_is_said_if_nothing_is_found(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["memory", "search", "Kafka?", "--domain", "cooking", *at]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "Nothing like it is remembered; use other words, or leave --domain out. "
        f"All debates: parley list --server {at[1]}\n"
    )
    assert run(["memory", "search", "Kafka?", "--domain", "cooking", "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_all_of_a_debate_is_shown_whole(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["memory", "show", "20260301", *at]) == 1  # of the debates, none's id begins so
    assert run(["memory", "show", KAFKA, *at]) == 0
    head, conclusion, *sections = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert head.splitlines()[0] == f"Debate      {KAFKA}"
    assert head.splitlines()[3:] == [
        "Domain      data",
        "Agreement   moderate agreement",
        "Confidence  84 % sure (2 of 3 votes)",
    ]
    assert conclusion == LONG.strip()
    assert sections == [
        "## Against the decision",
        f"- cy: {('It is hard to run. ' * 10).strip()}\n- di: Nobody knows it.",
        "## What it rests on",
        "- Kafka keeps order in a partition. (docs/kafka.md)",
        "## Where agents stood",
        "- Ada (for the decision): Use Kafka.\n- cy (against it): Use RabbitMQ.",
        "## Issues",
        "- ada to cy, severity 7: No figures. (rejected: They are in the annex.)",
    ]


def test_what_is_remembered_is_json_too(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["memory", "show", KAFKA, "--json", *at]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["debate"]["conclusion"], found["stands"][1]["text"]) == (LONG, "Use RabbitMQ.")


def test_no_remembered_text_poses_as_a_section(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    posing = "Yes.\n\n## Issues\n\n- ada to cy: none"
    found = remembered(conclusion=posing)
    found.stands[0].text = found.issues[0].issue.text = found.debate.dissents[0].text = posing
    orchestrator.memories = {KAFKA: found}
    assert run(["memory", "show", KAFKA, *at]) == 0
    assert capsys.readouterr().out.splitlines().count("## Issues") == 1


def test_that_nothing_is_remembered_is_said_in_one_line(
    at: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = "deb-20260303-101112-cccccccc"
    assert run(["memory", "show", unknown, *at]) == 1
    assert capsys.readouterr().err == (
        f"parley: nothing is remembered of {unknown}; the debate itself: parley show {unknown} --server {at[1]}\n"
    )
    for arguments in ([], ["--yes"]):
        assert run(["memory", "forget", unknown, *arguments, *at]) == 0
        assert capsys.readouterr().out == f"Nothing is remembered of {unknown}.\n"


def test_whoever_is_sure_is_not_asked(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["memory", "forget", KAFKA, *at]) == 2
    assert capsys.readouterr().err == "parley: there is no terminal to confirm on; use --yes\n"
    assert KAFKA in orchestrator.memories
    assert run(["memory", "forget", KAFKA, "--yes", *at]) == 0
    assert capsys.readouterr().out == f"Forgotten: {KAFKA}.\n"
    assert KAFKA not in orchestrator.memories


@pytest.mark.parametrize(("answer", "is_forgotten"), [(b"yes\n", True), (b"no\n", False)])
def test_a_person_is_shown_the_question_and_asked(
    at: list[str], orchestrator: ScriptedOrchestrator, tmp_path: Path, answer: bytes, *, is_forgotten: bool
) -> None:
    code, shown = on_terminal(["memory", "forget", KAFKA, *at], tmp_path, {"TERM": "dumb"}, typed=answer)
    assert f"Forget {KAFKA} for good? Kafka or RabbitMQ for orders?" in shown
    assert (code, KAFKA not in orchestrator.memories) == ((0, True) if is_forgotten else (1, False)), shown
