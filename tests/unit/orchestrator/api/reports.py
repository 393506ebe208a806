"""Reports of short debates, and what a reader of Markdown sees in them."""

from markdown_it import MarkdownIt
from markdown_it.token import Token

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.engine.format import Format
from parley.orchestrator.formats.panel import V1
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.events import Payload
from parley.v1.debate_pb2 import AgentScore, AnswerDetails, Outcome, UnfulfilledRequirement, Work
from parley.v1.event_pb2 import Claimed, Concluded, Event, RoundStarted, StepStarted
from parley.v1.panel_pb2 import PanelOutcome
from tests.unit.orchestrator.made_logs import CREATED, key_of, log, make_success

PROPOSAL = Work(activity="proposal", agent_id="ada", round=1)
CRITIQUE = Work(activity="critique", agent_id="bo", round=1, target_agent_id="ada")
REFINEMENT = Work(activity="refinement", agent_id="ada", round=1)
SYNTHESIS = Work(activity="synthesis", agent_id="judge")
DETAILS = AnswerDetails(
    implementation="Begin with one table.",
    tradeoffs=["Speed for ease."],
    recommendations=["Measure first.", "Keep backups."],
    unfulfilled_requirements=[UnfulfilledRequirement(text="Two regions.", hard=True)],
    open_questions=["How many writers?"],
    confidence=40,
)
OUTCOME = Outcome(
    description="Use an embedded store.",
    scores=[AgentScore(agent_id="ada", score=7.5), AgentScore(agent_id="bo", score=9)],
    details=DETAILS,
    panel=PanelOutcome(synthesized_by="judge"),
)
CLAIMED = Claimed(owner="a")
ROUND = RoundStarted(number=1, total=1)
BEGUN = (CREATED, CLAIMED, ROUND)
ANSWERING = create_event(key_of(SYNTHESIS), StepStarted(work=SYNTHESIS, digest="d", is_answer=True), 1)
WHOLE = (
    *BEGUN,
    make_success(PROPOSAL, "Use A.\nPosition: A."),
    make_success(CRITIQUE, "A is slow."),
    make_success(REFINEMENT, "Use B."),
    ANSWERING,
    make_success(SYNTHESIS, '{"description":"Use an embedded store."}'),
    Concluded(outcome=OUTCOME),
)


def report(*events: Event | Payload, debate_format: Format | None = V1) -> str:
    return render_report(fold(log(*events)), debate_format)


def parse(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def outline(text: str) -> list[str]:
    """The document's own headings, those inside of quotes and lists left out."""
    tokens = parse(text)
    return [
        f"{token.markup} {tokens[place + 1].content}"
        for place, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]


def cells(text: str) -> list[str]:
    tokens = parse(text)
    return [
        "".join(child.content for child in tokens[place + 1].children or ())
        for place, token in enumerate(tokens)
        if token.type in {"td_open", "th_open"}
    ]


def code(text: str) -> list[str]:
    return [token.content for token in parse(text) if token.type == "fence"]
