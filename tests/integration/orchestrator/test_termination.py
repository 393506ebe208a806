"""Rounds that end by what the other services say: convergence, and quality as the judge finds it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from parley.orchestrator.phases.assess import ASSESSMENT
from parley.runtime.server import RunningServer
from parley.v1.convergence_pb2 import CONVERGENCE_VERDICT_CONTINUING, AssessResponse, ConvergenceVerdict
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED
from parley.v1.panel_pb2 import TERMINATION_RULE_QUALITY, Termination
from tests.integration.orchestrator.around import AGREE, TWO, Around, create, follow, get_closed, value
from tests.support.orchestration import WITHIN, Orchestrator, failure_of
from tests.support.scripted_answers import judgement
from tests.support.scripted_faults import refusal
from tests.support.scripted_gateway import ScriptedGateway

AGREES, DISAGREES = (json.dumps({"issues": [], "agrees": agrees}) for agrees in (True, False))
"""What critics say."""
WORDS = ("partitions can be replayed by anyone", "auditors want seven years", "the team has run it before")
GOOD = Termination(rule=TERMINATION_RULE_QUALITY, threshold_percent=80)


@pytest.fixture
async def orchestrator(gateway_server: RunningServer, around: Around) -> AsyncIterator[Orchestrator]:
    async with around.all(), around.orchestrating(gateway_server) as served:
        yield served


def positions(**said: list[str]) -> Any:
    """Texts whose position goes by the agent and the round; the last one holds for later rounds."""

    def text(step: str, agent: str) -> str:
        number = int(step.split("/")[1])
        lines = said[agent]
        position = lines[min(number, len(lines)) - 1]
        return f"{position}\nPosition: {position}"

    return text


@pytest.mark.parametrize(
    ("said", "rounds", "verdict"),
    [
        ({"ada": ["Use Kafka."], "bo": ["Use RabbitMQ.", "Use Kafka."]}, 2, "CONVERGED"),
        ({"ada": ["Use Kafka."], "bo": ["Use RabbitMQ."]}, 2, "STABLE_DISAGREEMENT"),
        (
            {
                "ada": ["Use Kafka.", "Use RabbitMQ.", "Use Kafka."],
                "bo": ["Use RabbitMQ.", "Use Kafka.", "Use RabbitMQ."],
            },
            4,
            "REFINING",
        ),
    ],
)
async def test_convergence_ends_the_rounds_on_agreement_and_on_disagreement_that_lasts(
    orchestrator: Orchestrator,
    gateway: ScriptedGateway,
    said: dict[str, list[str]],
    rounds: int,
    verdict: str,
) -> None:
    gateway.text = positions(**said)
    gateway.critic = lambda _step, _agent: AGREES
    debate = await create(orchestrator, rounds=4, termination=AGREE)
    events = await follow(orchestrator, debate, "closed")
    state = await orchestrator.get(debate)
    assert state.current_round == rounds
    assert list(state.warnings) == []
    assert value(events, "round/1/convergence", AssessResponse).verdict == CONVERGENCE_VERDICT_CONTINUING
    decided = value(events, f"round/{min(rounds, 3)}/convergence", AssessResponse)
    assert ConvergenceVerdict.Name(decided.verdict) == f"CONVERGENCE_VERDICT_{verdict}"
    assert decided.reason.startswith(verdict.replace("_", " ").lower())


async def test_agents_that_agree_from_the_start_hold_one_round(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.text = positions(ada=["Use Kafka."], bo=["Kafka should be used."])
    gateway.critic = lambda _step, _agent: AGREES
    state = await get_closed(orchestrator, await create(orchestrator, rounds=5, termination=AGREE))
    assert state.current_round == 1
    assert not gateway.steps("round/2/*")


@pytest.mark.parametrize(
    ("critics", "held_rounds", "percent"),
    [
        ((AGREES, AGREES), 1, 100),
        ((AGREES, DISAGREES), 3, 75),
        ((DISAGREES, DISAGREES), 3, 50),
        (("I have my doubts.", AGREES), 1, 100),
        (("I have my doubts.", "So have I."), 1, 100),
    ],
    ids=["all agree", "one does not", "none does", "one does not say", "none says"],
)
async def test_positions_that_match_do_not_end_the_rounds_while_critics_do_not_agree(
    orchestrator: Orchestrator,
    gateway: ScriptedGateway,
    critics: tuple[str, str],
    held_rounds: int,
    percent: float,
) -> None:
    texts = [
        f"Round {number} brings a thought of its own: {word}.\nUse Kafka."
        for number, word in enumerate(WORDS)
    ]
    gateway.text = positions(ada=texts, bo=texts)
    gateway.critic = lambda _step, agent: critics[agent == "bo"]
    debate = await create(orchestrator, rounds=3, termination=AGREE)
    events = await follow(orchestrator, debate, "closed")
    assert (await orchestrator.get(debate)).current_round == held_rounds
    first = value(events, "round/1/convergence", AssessResponse)
    assert (first.position_agreement_percent, first.agreement_percent) == (100, percent)


async def test_convergence_with_only_one_agent_left_cannot_be_told_and_says_so(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.text = positions(ada=["Use Kafka."], bo=["Use RabbitMQ."])
    hold = gateway.hold("round/1/propose/ada")
    debate = await create(orchestrator, rounds=3, termination=AGREE)
    await hold.reached.wait()
    await orchestrator.intervene(debate, mute={"agent_id": "bo"})
    hold.release()
    state = await get_closed(orchestrator, debate)
    assert state.current_round == 3
    assert list(state.warnings) == [
        "agreement after round 2 could not be told, and ends no rounds: fewer than two agents have a proposal"
    ]


@pytest.mark.parametrize(("scores", "rounds"), [((79, 80), 1), ((79, 10), 3)])
async def test_quality_ends_the_rounds_once_the_best_work_is_good_enough(
    orchestrator: Orchestrator, gateway: ScriptedGateway, scores: tuple[int, int], rounds: int
) -> None:
    gateway.judge = lambda schema: (
        judgement(schema)
        if "description" in json.loads(schema)["properties"]
        else json.dumps({"scores": dict(zip("AB", scores, strict=True))})
    )
    state = await get_closed(orchestrator, await create(orchestrator, rounds=3, termination=GOOD))
    assert state.current_round == rounds
    assessed = [each for each in state.contributions if each.work.activity == ASSESSMENT.name]
    assert [each.key for each in assessed] == [
        f"round/{each}/quality" for each in range(1, min(rounds, 2) + 1)
    ]
    assert json.loads(assessed[0].reply.text) == {"scores": {"A": scores[0], "B": scores[1]}}


async def test_a_judge_that_fails_between_rounds_does_not_end_them(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.fail("round/1/quality", refusal("PROVIDER_QUOTA", "no money\nat all"))
    state = await get_closed(orchestrator, await create(orchestrator, rounds=2, termination=GOOD))
    assert state.current_round == 2
    assert list(state.warnings) == [
        "quality after round 1 could not be told, and ends no rounds: no money at all"
    ]


@pytest.mark.parametrize("rule", [AGREE, GOOD], ids=["convergence", "quality"])
async def test_a_resumed_debate_goes_by_what_was_decided_and_asks_nobody_again(
    gateway_server: RunningServer, gateway: ScriptedGateway, around: Around, rule: Termination
) -> None:
    gateway.text = positions(ada=["Use Kafka."], bo=["Use Kafka."])
    gateway.critic = lambda _step, _agent: AGREES
    scores = {"scores": {"A": 90, "B": 90}}
    gateway.judge = lambda schema: (
        judgement(schema) if "description" in json.loads(schema)["properties"] else json.dumps(scores)
    )
    hold = gateway.hold("synthesis")
    async with AsyncExitStack() as present:
        await present.enter_async_context(around.all())
        async with around.orchestrating(gateway_server) as orchestrator:
            debate = await create(orchestrator, rounds=3, termination=rule)
            async with asyncio.timeout(WITHIN):
                await hold.reached.wait()
    # Now convergence is away and the judge would be harder to please.
    scores["scores"] = {"A": 1, "B": 1}
    hold.release()
    async with around.orchestrating(gateway_server) as orchestrator:
        await follow(orchestrator, debate, "concluded")
        state = await orchestrator.get(debate)
    assert state.current_round == 1
    assert list(state.warnings) == []
    assert len(gateway.steps("round/1/quality")) == (1 if rule is GOOD else 0)


async def test_convergence_is_refused_to_an_agent_that_is_alone(orchestrator: Orchestrator) -> None:
    refused = await failure_of(create(orchestrator, agents=TWO[:1], rounds=3, termination=AGREE))
    assert [(each.field, each.description) for each in refused.violations] == [
        ("spec.panel.termination.rule", "convergence needs at least two agents")
    ]
    alone = await get_closed(
        orchestrator, await create(orchestrator, agents=TWO[:1], rounds=2, termination=GOOD)
    )
    assert alone.status == DEBATE_STATUS_COMPLETED
