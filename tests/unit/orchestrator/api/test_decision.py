"""The document of a decision: every section of it, the figures of the log, and nothing of others beside its place."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from parley.orchestrator.api.decision import decision_of
from parley.orchestrator.api.folding import fold
from parley.orchestrator.formats.moderated import V1
from parley.orchestrator.log.envelope import Envelope, create_event
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import STOP_REASON_STAGNATION, Approve, Debate, Intervention, Outcome, Work
from parley.v1.effect_pb2 import DECISION_RELATION_REVERSES
from parley.v1.event_pb2 import CheckpointClosed, Concluded, Intervened, RoundsEnded, SourcesListed
from parley.v1.moderated_pb2 import (
    CONFIDENCE_LOW,
    ConsideredPerspective,
    FollowUp,
    ModeratedOutcome,
    Perspective,
    Tension,
)
from parley.v1.orchestrator_pb2 import GetDecisionResponse
from parley.v1.panel_pb2 import Objection
from parley.v1.source_pb2 import Source
from tests.unit.orchestrator.made_logs import SPEC, log, make_created, make_failure, make_success
from tests.unit.runtime.test_safe_markdown import HOSTILE

SECTIONS = [
    "## Recommendation",
    "## Dissenting View",
    "## Question",
    "## Points of Agreement",
    "## Key Tensions",
    "## Perspectives Considered",
    "## Guidance",
    "## Approval",
    "## End of the Rounds",
    "## Follow-up",
    "## Sources",
    "## Usage",
]
ARGUMENT = Work(activity="argument", agent_id="simplicity", round=1)
OUTCOME = ModeratedOutcome(
    topic="A cache for sessions",
    rounds=2,
    perspectives=[
        ConsideredPerspective(
            perspective=Perspective(
                name="Simplicity Advocate",
                priorities=["readability", "fewer dependencies"],
                trade_offs="Will accept slower reads",
            ),
            agent_id="simplicity",
            key_arguments=["One store is *enough*.", "Nobody here runs a cache."],
            trade_offs_accepted=["Ten milliseconds more."],
            absent_rounds=[2],
        ),
        ConsideredPerspective(
            perspective=Perspective(name="Performance Advocate", trade_offs="Complexity"),
            agent_id="performance",
            muted_from_round=2,
        ),
    ],
    agreements=["Sessions are small."],
    tensions=[
        Tension(text="Latency against operation.", open=True),
        Tension(text="Cost.", settled="It was conceded."),
    ],
    constraints=["Two engineers."],
    assumptions=["It runs already."],
    recommendation="Keep them in the database.\n\n- Measure first.",
    confidence=CONFIDENCE_LOW,
    caveats=["Ten times the users."],
    dissents=[Objection(agent_id="performance", text="It will be slow.")],
    guidance=["Mind the team."],
    approved=True,
)
REFUSED = Intervention(approve=Approve(text="Name the cost."))
APPROVED = Intervention(approve=Approve(approved=True))
DECISION = (
    "- **Decision:** Keep them in the database. Recommended by the moderator after 2 rounds between Simplicity Advocate and"
    " Performance Advocate; a person approved it."
)
ENDED = RoundsEnded(reason=STOP_REASON_STAGNATION, explanation="nothing new was said in round 2")


def make_decided_log(outcome: ModeratedOutcome, question: str = SPEC.question) -> list[Envelope]:
    usage = Usage(input_tokens=1200, output_tokens=30, cost_micros=1500, requests=1)
    return log(
        create_event("created", make_created(question=question, format="moderated@1")),
        make_success(ARGUMENT, "One store.", usage=usage),
        make_failure(Work(activity="argument", agent_id="simplicity", round=2)),
        ENDED,
        Intervened(request_id="r1", intervened_by="kim"),
        create_event("synthesis/approval", CheckpointClosed(request_id="r1", intervention=REFUSED)),
        create_event("synthesis/2/approval", CheckpointClosed(request_id="r2", intervention=APPROVED)),
        Concluded(outcome=Outcome(description="d", moderated=outcome)),
    )


def decision(outcome: ModeratedOutcome, question: str = SPEC.question) -> GetDecisionResponse:
    return decision_of(fold(make_decided_log(outcome, question)), outcome, V1)


def parse(markdown: str) -> list[Token]:
    return MarkdownIt("commonmark").parse(markdown)


def headings(markdown: str) -> list[str]:
    """Every heading, also inside of quotes and lists."""
    tokens = parse(markdown)
    return [
        f"{token.markup} {tokens[place + 1].content}"
        for place, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


def section(markdown: str, title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n\n(.*?)(?=\n\n## |\n\Z)", markdown, re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]


def test_a_document_says_all_that_came_of_the_debate() -> None:
    shown = decision(OUTCOME).markdown
    assert headings(shown) == [
        "# Decision: Which store?",
        *SECTIONS[:6],
        "### Simplicity Advocate",
        "### Performance Advocate",
        *SECTIONS[6:],
    ]
    opening = shown.partition("\n\n## ")[0].splitlines()[2:]
    assert opening == [
        DECISION,
        "- **Confidence:** Low, by the moderator.",
        "- **Dissent:** Performance Advocate disagrees: It will be slow.",
        "- **Date:** 2027-01-02",
        "- **Debate ID:** deb-20270102-030405-abcdefgh",
        "- **Rounds:** 2",
        "- **Perspectives:** Simplicity Advocate, Performance Advocate",
    ]
    assert section(shown, "Question") == (
        "> Which store?\n\n**Constraints:**\n\n- Two engineers.\n\n**Assumptions:**\n\n- It runs already."
    )
    assert section(shown, "Approval") == (
        "- **Not approved** by kim on 2027-01-02 03:04:10 UTC: Name the cost.\n"
        "- **Approved** on 2027-01-02 03:04:11 UTC."
    )
    assert section(shown, "Perspectives Considered") == (
        "### Simplicity Advocate\n\n"
        "- **Priorities:** readability, fewer dependencies\n- **Trade-offs:** Will accept slower reads\n\n"
        "**Key arguments:**\n\n- One store is *enough*.\n- Nobody here runs a cache.\n\n"
        "**Trade-offs accepted:**\n\n- Ten milliseconds more.\n\n"
        "It said nothing in round 2, since its calls failed.\n\n"
        "### Performance Advocate\n\n"
        "- **Priorities:** none\n- **Trade-offs:** Complexity\n\n"
        "**Key arguments:**\n\nNone.\n\n**Trade-offs accepted:**\n\nNone.\n\n"
        "It was muted from round 2 on."
    )
    assert section(shown, "Points of Agreement") == "- Sessions are small."
    assert (
        section(shown, "Key Tensions")
        == "- **Open:** Latency against operation.\n- **Settled:** Cost. It was conceded."
    )
    assert section(shown, "Recommendation") == (
        "> Keep them in the database.\n>\n> - Measure first.\n\n**Caveats:**\n\n- Ten times the users."
    )
    assert section(shown, "Dissenting View") == "- **Performance Advocate:** It will be slow."
    assert section(shown, "Guidance") == "- Mind the team."
    assert section(shown, "End of the Rounds") == (
        "- **Rounds held:** 2\n- **Reason:** stagnation: nothing new was said in round 2"
    )
    assert section(shown, "Follow-up") == "None was offered."
    assert (
        section(shown, "Usage") == "- Model calls: 2\n- Tokens: 1,203 in, 30 out\n- Cost: 0.001507 US dollars"
    )


def test_the_overview_says_which_earlier_decision_is_kept_or_reversed() -> None:
    debate = fold(make_decided_log(OUTCOME))
    debate.outcome.related.add(
        debate_id="deb-1",
        decision="Use <b>Redis</b>.",
        relation=DECISION_RELATION_REVERSES,
        reason="The load fell.",
    ).decided_at.FromJsonString("2026-03-03T10:00:00Z")
    overview = decision_of(debate, OUTCOME, V1).markdown.partition("\n\n## ")[0]
    assert overview.splitlines()[-1] == (
        r"- **Earlier decision:** Reverses the decision of 3 March 2026 (deb-1): "
        r'"Use \<b\>Redis\</b\>." Why: The load fell.'
    )


def test_what_is_empty_says_so_in_words() -> None:
    shown = decision(ModeratedOutcome()).markdown
    assert headings(shown) == ["# Decision: Which store?", *SECTIONS]
    assert "- **Perspectives:** none\n" in shown
    assert section(shown, "Perspectives Considered") == "None joined."
    assert (
        section(shown, "Points of Agreement")
        == "The perspectives agreed on nothing that the moderator noted."
    )
    assert section(shown, "Key Tensions") == "The moderator noted none."
    assert section(shown, "Recommendation") == "There is none.\n\n**Caveats:**\n\nNone."
    assert section(shown, "Dissenting View") == "No perspective strongly disagrees."
    assert section(shown, "Guidance") == "No person gave any."


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (FollowUp(), "An issue was offered, and not wanted."),
        (FollowUp(requested=True, url="https://a.b/7"), "An issue was made: <https://a.b/7>"),
        (FollowUp(requested=True, url="<b>"), r"An issue was made: \<b\>"),
        (FollowUp(requested=True), "An issue was made; the tracker did not say where it is."),
        (
            FollowUp(requested=True, failure="it said <500>"),
            r"An issue was wanted, and could not be made: it said \<500\>",
        ),
    ],
)
def test_a_follow_up_is_told_as_it_went(made: FollowUp, told: str) -> None:
    assert section(decision(ModeratedOutcome(follow_up=made)).markdown, "Follow-up") == told


def test_sources_are_listed_with_who_cited_them() -> None:
    assert section(decision(OUTCOME).markdown, "Sources") == "None were given."
    listed = SourcesListed(sources=[Source(number=1, path="docs/load.md", sha256="ab" * 32)])
    said = make_success(ARGUMENT, "It is slow [S1], as [S2] says.")
    debate = fold(log(make_created(), listed, said, Concluded(outcome=Outcome(moderated=OUTCOME))))
    text = section(decision_of(debate, OUTCOME, V1).markdown, "Sources")
    assert "| S1 |  | docs/load.md | 1970-01-01 00:00:00 UTC | abababababab | simplicity (round 1) |" in text
    assert text.endswith("- **Warning:** There is no source S2. It was cited by simplicity (round 1).")


@given(HOSTILE)
def test_no_text_of_others_changes_the_structure(text: str) -> None:
    perspective = Perspective(name=text, priorities=[text], trade_offs=text)
    outcome = ModeratedOutcome(
        topic=text,
        perspectives=[
            ConsideredPerspective(
                perspective=perspective, agent_id="a", key_arguments=[text, text], trade_offs_accepted=[text]
            )
        ],
        agreements=[text, text],
        tensions=[Tension(text=text, open=True), Tension(text=text)],
        recommendation=text,
        caveats=[text],
        dissents=[Objection(agent_id="a", text=text)],
        guidance=[text],
        follow_up=FollowUp(requested=True, failure=text),
    )
    tokens = parse(decision(outcome, text).markdown)
    found = [token for token in tokens if token.type == "heading_open"]
    assert [token.tag for token in found] == ["h1", *["h2"] * 6, "h3", *["h2"] * 6]
    assert {token.level for token in found} == {0}
    kinds = {each.type for token in tokens for each in (token, *(token.children or ()))}
    assert not kinds & {"html_block", "html_inline", "image"}


def test_the_date_is_that_of_the_conclusion_whatever_comes_after() -> None:
    folded = fold(make_decided_log(OUTCOME))
    later = Debate()
    later.CopyFrom(folded)
    later.update_time.seconds += 3 * 24 * 3600
    assert decision_of(later, OUTCOME, V1) == decision_of(folded, OUTCOME, V1)


@pytest.mark.parametrize(
    ("topic", "slug"),
    [
        ("A cache for sessions", "a-cache-for-sessions"),
        ("  Größe & Café: C#/.NET? ", "grosse-cafe-c-net"),
        ("../../etc/passwd", "etc-passwd"),
        ("x" * 80, "x" * 60),
        (f"{'x' * 59} yes", "x" * 59),
        ("Кэш", "deb-20270102-030405-abcdefgh"),
        ("42!", "deb-20270102-030405-abcdefgh"),
        ("", "deb-20270102-030405-abcdefgh"),
    ],
)
def test_a_file_is_named_by_date_and_topic(topic: str, slug: str) -> None:
    assert decision(ModeratedOutcome(topic=topic)).file_name == f"2027-01-02-{slug}.md"


@given(st.text())
def test_a_file_name_is_always_one(topic: str) -> None:
    name = decision(ModeratedOutcome(topic=topic)).file_name
    assert re.fullmatch(r"2027-01-02(-[a-z0-9]+)+\.md", name)
    assert len(name) <= 74
