"""Agreement that cannot be told from the positions is asked of the judge, and never taken for granted."""

import json
from collections.abc import Callable

import pytest

from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONTINUING,
    CONVERGENCE_VERDICT_CONVERGED,
    CONVERGENCE_VERDICT_UNDETERMINED,
    AssessRequest,
    AssessResponse,
    UnsurePair,
)
from parley.v1.debate_pb2 import Debate
from parley.v1.panel_pb2 import TERMINATION_RULE_CONVERGENCE, Termination
from tests.integration.orchestrator.around import create, held
from tests.support.orchestration import Orchestrator, failure_of
from tests.support.scripted_gateway import ScriptedGateway, judgement

AGREE = Termination(rule=TERMINATION_RULE_CONVERGENCE)
SILENT, AGREES, DISAGREES = (
    json.dumps({"issues": []} | said) for said in ({}, {"agrees": True}, {"agrees": False})
)
TOGETHER, APART, UNCLEAR = [[1, 2]], [[1], [2]], [[1]]


class Unsure:
    """Convergence that can never tell whether the two agents agree, and goes by what was settled."""

    def __init__(self) -> None:
        self.asked: list[AssessRequest] = []

    def __call__(self, request: AssessRequest) -> AssessResponse:
        self.asked.append(request)
        if not request.settled:
            pair = UnsurePair(agent_id="ada", other_agent_id="bo", same_probability=0.5)
            return AssessResponse(verdict=CONVERGENCE_VERDICT_UNDETERMINED, unsure=[pair])
        same = all(each.same for each in request.settled)
        return AssessResponse(
            verdict=CONVERGENCE_VERDICT_CONVERGED if same else CONVERGENCE_VERDICT_CONTINUING
        )


def grouped(*answers: list[list[int]]) -> Callable[[str], str]:
    """A judge that groups so, one answer after the other; the last one holds."""
    left = list(answers)

    def answer(schema: str) -> str:
        if "groups" not in json.loads(schema)["properties"]:
            return judgement(schema)
        return json.dumps({"groups": left.pop(0) if len(left) > 1 else left[0]})

    return answer


async def debated(
    orchestrator: Orchestrator,
    gateway: ScriptedGateway,
    critic: str = SILENT,
    termination: Termination = AGREE,
) -> Debate:
    gateway.critic = lambda _step, _agent: critic
    gateway.text = lambda _step, agent: f"Text.\nPosition: what {agent} holds"
    return await held(orchestrator, await create(orchestrator, rounds=2, termination=termination))


@pytest.fixture
def unsure(gateway: ScriptedGateway) -> Unsure:
    gateway.assess = Unsure()
    return gateway.assess


async def test_positions_that_the_judge_groups_together_end_the_rounds(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.judge = grouped(TOGETHER)
    state = await debated(orchestrator, gateway)
    assert state.current_round == 1
    assert gateway.steps("round/1/grouping*") == ["round/1/grouping"]
    assert [each.same for each in unsure.asked[-1].settled] == [True]


async def test_another_agent_is_asked_where_the_debate_says_so(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.judge = grouped(TOGETHER)
    await debated(
        orchestrator,
        gateway,
        termination=Termination(rule=TERMINATION_RULE_CONVERGENCE, grouping_agent_id="bo"),
    )
    assert gateway.asked("round/1/grouping").agent.id == "bo"


async def test_an_agent_that_takes_no_part_cannot_be_asked(orchestrator: Orchestrator) -> None:
    termination = Termination(rule=TERMINATION_RULE_CONVERGENCE, grouping_agent_id="zed")
    refused = await failure_of(create(orchestrator, termination=termination))
    assert [each.field for each in refused.violations] == ["spec.panel.termination.grouping_agent_id"]


async def test_the_judge_reads_numbers_and_neither_names_nor_letters(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.judge = grouped(TOGETHER)
    await debated(orchestrator, gateway)
    told = gateway.asked("round/1/grouping").prompt
    assert "Position 1" in told
    assert "Position 2" in told
    assert "agent A" not in told


async def test_what_stays_unclear_is_no_agreement(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.judge = grouped(UNCLEAR)
    state = await debated(orchestrator, gateway)
    assert state.current_round == 2
    assert not any(each.settled for each in unsure.asked)


async def test_a_judge_that_fails_leaves_it_open(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.judge = lambda schema: (
        "no JSON" if "groups" in json.loads(schema)["properties"] else judgement(schema)
    )
    assert (await debated(orchestrator, gateway)).current_round == 2


@pytest.mark.parametrize(("again", "rounds"), [(TOGETHER, 1), (APART, 2)])
async def test_where_critics_say_otherwise_the_judge_is_asked_again_and_only_the_same_finding_counts(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure, again: list[list[int]], rounds: int
) -> None:
    gateway.judge = grouped(TOGETHER, again)
    state = await debated(orchestrator, gateway, critic=DISAGREES)
    assert gateway.steps("round/1/grouping*") == ["round/1/grouping", "round/1/grouping/again"]
    assert state.current_round == rounds


async def test_where_critics_say_the_same_the_judge_is_asked_once(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.judge = grouped(TOGETHER)
    await debated(orchestrator, gateway, critic=AGREES)
    assert gateway.steps("round/1/grouping*") == ["round/1/grouping"]


async def test_an_agent_without_a_position_is_asked_for_it_once(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.judge = grouped(TOGETHER)
    gateway.critic = lambda _step, _agent: SILENT
    gateway.text = lambda step, agent: (
        f"Position: what {agent} holds" if "/position/" in step or agent == "bo" else "Only a text."
    )
    await held(orchestrator, await create(orchestrator, rounds=2, termination=AGREE))
    assert gateway.steps("round/*/position/*") == ["round/1/position/ada"]
    assert [each.position for each in unsure.asked[0].positions] == ["what ada holds", "what bo holds"]


async def test_a_debate_of_fixed_rounds_asks_nobody_about_agreement(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.text = lambda _step, _agent: "Only a text."
    await held(orchestrator, await create(orchestrator, rounds=2))
    assert not gateway.steps("round/*/position/*")
    assert not gateway.steps("round/*/grouping*")
