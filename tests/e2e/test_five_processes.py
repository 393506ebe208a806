"""A debate across five processes, each service its own: what is remembered, how agents are rated, and one trace."""

import asyncio
import json
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind

from parley.client import Debate, DebateSpec, DebateStatus, ParleyClient, RatingsClient
from parley.v1.debate_pb2 import Participant
from parley.v1.effect_pb2 import DECISION_RELATION_CONFIRMS
from parley.v1.event_pb2 import Event
from parley.v1.panel_pb2 import PanelSettings, Termination, TerminationRule
from tests.e2e.harness import SERVICES, System, model_server, system
from tests.support.model_server.ledger import read_ledger
from tests.support.orchestration import kind_of
from tests.support.spans import forget_spans, list_ended_spans
from tests.support.trace_collector import Collector, Span, run_collector

pytestmark = pytest.mark.timeout(180)  # five processes start here, on a machine that may be busy

FIRST = "Should a small team keep its service in one process or split it into several?"
SECOND = "Is it better for a team of four to run one process or to split the service into many?"
VERDICT = {
    "description": "Keep one process until two parts must scale apart.",
    "implementation": "",
    "tradeoffs": [],
    "recommendations": [],
    "requirements_met": {"R1": True, "R2": True},
    "open_questions": [],
    "confidence": 80,
    "scores": {"A": 9, "B": 4},
    "positions": {"groups": [["P1"]], "cannot_be_told": [], "answer": "P1"},
}
CONFIRMS = [{"number": 1, "relation": "confirms", "reason": "The team is still small."}]
RULES = [
    {
        "match": {"prompt": "Fill in `earlier_decisions`"},
        "answer": {**VERDICT, "earlier_decisions": CONFIRMS},
    },
    {"match": {"prompt": "Score the work of every agent"}, "answer": VERDICT},
    {
        "match": {"prompt": "Write your proposal: your own answer"},
        "answer": "One will do.\nPosition: Keep one process.",
    },
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("five")


@pytest.fixture(scope="module")
def models(folder: Path) -> Iterator[str]:
    (folder / "rules.json").write_text(json.dumps(RULES))
    rules, ledger = str(folder / "rules.json"), str(folder / "ledger.jsonl")
    with model_server("--faults", rules, "--ledger", ledger) as url:
        yield url


@dataclass(frozen=True)
class Story:
    """Two debates on like questions, one after the other, and what could be seen from outside."""

    first: Debate
    second: Debate
    ratings: dict[str, float]
    prompts: list[str]
    spans: Sequence[Span]
    caller: Span


@pytest.fixture(scope="module")
def story(folder: Path, models: str) -> Iterator[Story]:
    with run_collector() as collector:
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        with system(folder, models, variables) as services:
            for name in SERVICES:
                services.start(name, ("parley.cli", "serve", "ratings") if name == "ratings" else ())
            services.wait(*SERVICES)
            yield asyncio.run(tell(services, collector, folder))


async def tell(services: System, collector: Collector, folder: Path) -> Story:
    forget_spans()
    async with (
        ParleyClient(services.addresses["orchestrator"]) as parley,
        RatingsClient(services.addresses["ratings"]) as ratings,
    ):
        with trace.get_tracer("test").start_as_current_span("the caller") as caller:
            debate = await parley.create_debate(spec(FIRST))
        first = await follow_to_end(parley, debate)
        second = await follow_to_end(parley, await parley.create_debate(spec(SECOND)))
        rated = {each.agent_id: each.elo async for each in ratings.list()}
    own = [each for each in map(to_span, list_ended_spans()) if each.trace == trace_of(caller)]
    spans = collector.wait_for(trace_of(caller), lambda found: are_whole([*own, *found]))
    prompts = [each.prompt for each in read_ledger(folder / "ledger.jsonl")]
    (root,) = find_named(own, "the caller")
    return Story(first, second, rated, prompts, [*own, *spans], root)


def spec(question: str, rounds: int = 1, termination: Termination | None = None) -> DebateSpec:
    agents = [Participant(agent_id=each) for each in ("architect", "performance")]
    settings = PanelSettings(rounds=rounds, termination=termination)
    return DebateSpec(question=question, agents=agents, panel=settings)


async def follow_to_end(parley: ParleyClient, debate: str) -> Debate:
    """Follow a debate until it is closed."""
    async with asyncio.timeout(60):
        kinds = [kind_of(each) async for each in parley.watch(debate) if isinstance(each, Event)]
    assert kinds[-1] == "closed", kinds
    return await parley.get(debate)


def trace_of(span: trace.Span) -> str:
    return f"{span.get_span_context().trace_id:032x}"


def to_span(span: ReadableSpan) -> Span:
    assert span.context is not None
    return Span(
        service="caller",
        name=span.name,
        kind="client" if span.kind is SpanKind.CLIENT else "",
        trace=f"{span.context.trace_id:032x}",
        id=f"{span.context.span_id:016x}",
        parent=f"{span.parent.span_id:016x}" if span.parent else "",
    )


def are_whole(spans: Sequence[Span]) -> bool:
    """Whether the debate's own span has come, and what every call of a service left at the service that it called."""
    called = {each.parent for each in spans if each.kind == "server"}
    calls = [each for each in spans if each.kind == "client" and each.name.startswith("parley.v1.")]
    return bool(find_named(spans, "invoke_workflow panel@1")) and all(each.id in called for each in calls)


def find_named(spans: Sequence[Span], name: str) -> list[Span]:
    return [each for each in spans if each.name == name]


def test_a_debate_comes_to_its_answer_without_a_warning(story: Story) -> None:
    assert story.first.status == DebateStatus.DEBATE_STATUS_COMPLETED
    assert story.first.outcome.description == VERDICT["description"]
    assert list(story.first.warnings) == list(story.second.warnings) == []


def test_the_vote_over_the_first_drafts_is_kept_beside_the_answer(story: Story) -> None:
    (group,) = story.first.first_drafts.groups
    assert list(group.agent_ids) == ["architect", "performance"]
    assert group.position == "Keep one process."
    assert story.first.first_drafts.majority


def test_the_judges_scores_move_the_ratings_and_make_no_points(story: Story) -> None:
    assert story.ratings["architect"] > 1516
    assert story.ratings["architect"] + story.ratings["performance"] == pytest.approx(3000)


def test_a_debate_on_a_like_question_is_shown_the_first_as_quotation(story: Story) -> None:
    assert list(story.first.recalled_debate_ids) == []
    assert list(story.second.recalled_debate_ids) == [story.first.id]
    shown = [each for each in story.prompts if "Earlier decision 1, of " in each]
    assert len(shown) == 7, "first drafts, critiques, refinements and the answer of the second debate"
    for prompt in shown:
        quotation = prompt.partition("the likeliest first (quotation, not instructions):")[2]
        quoted = quotation.partition("<<<")[2].partition(">>>")[0]
        assert f"Question: {FIRST}\nDecision: {VERDICT['description']}" in quoted
    (related,) = story.second.outcome.related
    assert (related.debate_id, related.relation) == (story.first.id, DECISION_RELATION_CONFIRMS)


def rpc(caller: str, service: str, method: str) -> tuple[str, str]:
    return f"{caller} client {method}", f"{service} server {method}"


def label(span: Span) -> str:
    name = "invoke_agent" if span.name.startswith("invoke_agent") else span.name
    name = "chat" if span.name.startswith("chat") else name
    service = span.service.removeprefix("parley-")
    return " ".join(part for part in (service, span.kind, name.removeprefix("parley.v1.")) if part)


CREATE = "OrchestratorService/CreateDebate"
AGENTS, ROUTES = (f"GatewayService/{name}" for name in ("ListAgents", "ListRoutes"))
GENERATE, FORGET = (f"GatewayService/{name}" for name in ("Generate", "ForgetAnswers"))
GROUP, EMBED = "ConvergenceService/GroupPositions", "ConvergenceService/Embed"
RECALL, PATTERNS, REMEMBER = (f"MemoryService/{name}" for name in ("Recall", "ListPatterns", "RecordDebate"))
RATE = "RatingsService/RecordMatch"
WORKFLOW = "orchestrator invoke_workflow panel@1"

EDGES = {
    ("caller the caller", f"caller client {CREATE}"),
    rpc("caller", "orchestrator", CREATE),
    (f"orchestrator server {CREATE}", f"orchestrator client {AGENTS}"),
    rpc("orchestrator", "gateway", AGENTS),
    (f"orchestrator server {CREATE}", f"orchestrator client {ROUTES}"),
    rpc("orchestrator", "gateway", ROUTES),
    (f"orchestrator server {CREATE}", WORKFLOW),
    (WORKFLOW, f"orchestrator client {RECALL}"),
    rpc("orchestrator", "memory", RECALL),
    rpc("memory", "convergence", EMBED),
    (WORKFLOW, f"orchestrator client {PATTERNS}"),
    rpc("orchestrator", "memory", PATTERNS),
    (WORKFLOW, "orchestrator invoke_agent"),
    ("orchestrator invoke_agent", f"orchestrator client {GENERATE}"),
    rpc("orchestrator", "gateway", GENERATE),
    (f"gateway server {GENERATE}", "gateway client chat"),
    (WORKFLOW, f"orchestrator client {FORGET}"),
    rpc("orchestrator", "gateway", FORGET),
    (WORKFLOW, f"orchestrator client {GROUP}"),
    rpc("orchestrator", "convergence", GROUP),
    (WORKFLOW, f"orchestrator client {RATE}"),
    rpc("orchestrator", "ratings", RATE),
    (WORKFLOW, f"orchestrator client {REMEMBER}"),
    rpc("orchestrator", "memory", REMEMBER),
    (f"memory server {REMEMBER}", f"memory client {EMBED}"),
}


def test_one_trace_leads_from_the_caller_to_every_call_in_every_service(story: Story) -> None:
    by_id = {each.id: each for each in story.spans}
    roots = [each for each in story.spans if each.parent not in by_id]
    assert roots == [story.caller], "every span's parent is in the trace"
    children = [each for each in story.spans if each is not story.caller]
    assert {(label(by_id[each.parent]), label(each)) for each in children} == EDGES
    assert not [each for each in story.spans if each.failed]
    chats = [each for each in story.spans if label(each) == "gateway client chat"]
    assert (
        len(chats) == len([each for each in story.spans if label(each) == "orchestrator invoke_agent"]) == 9
    )
    assert {each.attributes["gen_ai.conversation.id"] for each in chats} == {story.first.id}
    assert {each.service for each in story.spans} == {"caller", *(f"parley-{each}" for each in SERVICES)}


@pytest.fixture
def only_models(tmp_path: Path, models: str) -> Iterator[System]:
    """Gateway and orchestrator run; convergence, ratings and memory are away."""
    with system(tmp_path, models, {"PARLEY_LEASE_SECONDS": "2"}) as services:
        services.start("gateway")
        services.start("orchestrator")
        services.wait("gateway", "orchestrator")
        yield services


async def test_what_an_answer_owes_to_services_that_are_away_is_done_once_they_return(
    only_models: System,
) -> None:
    services = only_models
    termination = Termination(rule=TerminationRule.TERMINATION_RULE_CONVERGENCE)
    async with ParleyClient(services.addresses["orchestrator"]) as parley:
        debate = await parley.create_debate(spec(FIRST, 2, termination=termination))
        await follow_until(parley, debate, "concluded")
        answered = await parley.get(debate)
        assert answered.status == DebateStatus.DEBATE_STATUS_COMPLETED
        assert answered.outcome.description == VERDICT["description"]
        assert answered.current_round == 2
        assert [each.partition(": ")[0] for each in sorted(answered.warnings)] == [
            "agreement after round 1 could not be told, and ends no rounds",
            "issues of past debates could not be recalled",
            "past debates could not be recalled",
            "the first drafts could not be grouped",
        ]
        assert all(" is away: " in each for each in answered.warnings)

        services.stop("orchestrator", signal.SIGKILL)
        services.start("orchestrator")
        for name in ("convergence", "ratings", "memory"):
            services.start(name)
        services.wait(*SERVICES)
        async with asyncio.timeout(30):
            closed = await follow_to_end(parley, debate)
        assert closed.outcome == answered.outcome
        async with RatingsClient(services.addresses["ratings"]) as ratings:
            assert {each.agent_id: each.matches async for each in ratings.list()} == {
                "architect": 1,
                "performance": 1,
            }
        later = await follow_to_end(parley, await parley.create_debate(spec(SECOND)))
        assert list(later.recalled_debate_ids) == [debate]


async def follow_until(parley: ParleyClient, debate: str, kind: str) -> None:
    """Follow a debate until an event of a kind has come."""
    async with asyncio.timeout(30):
        async for each in parley.watch(debate):
            if isinstance(each, Event) and kind_of(each) == kind:
                return
