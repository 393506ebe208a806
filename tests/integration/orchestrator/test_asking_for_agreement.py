"""Agreement that cannot be told from the positions is asked of the judge, and never taken for granted."""

import json
from collections.abc import Callable
from typing import Any

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
from parley.v1.ratings_pb2 import Rating
from tests.integration.orchestrator.around import create, get_closed
from tests.support.grouping_answers import list_shown_positions
from tests.support.orchestration import Orchestrator, failure_of
from tests.support.scripted_gateway import ScriptedGateway, StepRequest

AGREE = Termination(rule=TERMINATION_RULE_CONVERGENCE)
SILENT = json.dumps({"issues": []})


def put_together(names: list[str]) -> Any:
    return {"groups": [names], "cannot_be_told": []}


def keep_apart(names: list[str]) -> Any:
    return {"groups": [[each] for each in names], "cannot_be_told": []}


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


def group_in_turn(*answers: Callable[[list[str]], Any]) -> Callable[[StepRequest], str]:
    """An agent that groups so, one answer after the other; the last one holds."""
    left = list(answers)

    def answer(asked: StepRequest) -> str:
        said = left.pop(0) if len(left) > 1 else left[0]
        return json.dumps(said(list(list_shown_positions(asked.prompt))))

    return answer


async def hold_debate(
    orchestrator: Orchestrator,
    gateway: ScriptedGateway,
    critic: str = SILENT,
    termination: Termination = AGREE,
    stands: Callable[[str], str] = lambda agent: f"what {agent} holds",
) -> Debate:
    gateway.critic = lambda _step, _agent: critic
    gateway.text = lambda _step, agent: f"Text.\nPosition: {stands(agent)}"
    return await get_closed(orchestrator, await create(orchestrator, rounds=2, termination=termination))


@pytest.fixture
def unsure(gateway: ScriptedGateway) -> Unsure:
    gateway.assess = Unsure()
    return gateway.assess


async def test_positions_that_the_judge_groups_together_end_the_rounds(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.grouping = group_in_turn(put_together)
    state = await hold_debate(orchestrator, gateway)
    assert state.current_round == 1
    assert [each.same for each in unsure.asked[-1].settled] == [True]


async def test_another_agent_is_asked_where_the_debate_says_so(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.grouping = group_in_turn(put_together)
    await hold_debate(
        orchestrator,
        gateway,
        termination=Termination(rule=TERMINATION_RULE_CONVERGENCE, grouping_agent_id="bo"),
    )
    assert gateway.asked("round/1/grouping").agent.id == "bo"


async def test_an_agent_that_takes_no_part_cannot_be_asked(orchestrator: Orchestrator) -> None:
    termination = Termination(rule=TERMINATION_RULE_CONVERGENCE, grouping_agent_id="zed")
    refused = await failure_of(create(orchestrator, termination=termination))
    assert [each.field for each in refused.violations] == ["spec.panel.termination.grouping_agent_id"]


async def test_positions_are_shown_by_names_that_no_text_has_and_without_their_agents(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    await hold_debate(
        orchestrator, gateway, stands={"ada": "It draws 5 mW.", "bo": "It draws 5 MW."}.__getitem__
    )
    asked = gateway.asked("round/1/grouping")
    assert set(list_shown_positions(asked.prompt)) == {"P1", "P2"}, "case tells units apart"
    assert json.loads(asked.schema)["properties"]["groups"]["items"]["items"]["enum"] == ["P1", "P2"]
    assert "agent A" not in asked.prompt


def group_as(both: list[list[str]]) -> Callable[[list[str]], Any]:
    return lambda _: {"groups": both, "cannot_be_told": []}


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (group_as([["P1"]]), "it leaves out the position “"),
        (group_as([["P1", "P2"], ["P2"]]), "” more than once"),
        (group_as([["P1", "P2", "P3"]]), "'P3' is the name of no position"),
        (group_as([["64", "204"]]), "'64' is the name of no position"),
        (lambda names: {"groups": [names], "cannot_be_told": ["P1"]}, "” more than once"),
        (lambda _: "no groups", "did not say"),
    ],
    ids=["one is missing", "one is there twice", "one too many", "numbers of a text", "in both", "no JSON"],
)
async def test_an_answer_that_does_not_name_each_position_once_is_not_believed(
    answer: Callable[[list[str]], Any],
    wrong: str,
    orchestrator: Orchestrator,
    gateway: ScriptedGateway,
    unsure: Unsure,
) -> None:
    gateway.grouping = group_in_turn(answer)
    state = await hold_debate(orchestrator, gateway)
    assert state.current_round == 2
    assert not any(each.settled for each in unsure.asked)
    assert any(wrong in each for each in state.warnings), state.warnings


async def test_what_cannot_be_told_is_no_agreement(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.grouping = group_in_turn(lambda _: {"groups": [["P1"]], "cannot_be_told": ["P2"]})
    state = await hold_debate(orchestrator, gateway)
    assert state.current_round == 2
    assert not any(each.settled for each in unsure.asked)


@pytest.mark.parametrize(("again", "rounds"), [(put_together, 1), (keep_apart, 2)])
async def test_an_agent_without_a_record_is_asked_twice_and_only_the_same_finding_counts(
    again: Callable[[list[str]], Any],
    rounds: int,
    orchestrator: Orchestrator,
    gateway: ScriptedGateway,
    unsure: Unsure,
) -> None:
    gateway.grouping = group_in_turn(put_together, again)
    state = await hold_debate(orchestrator, gateway)
    assert sorted(gateway.steps("round/1/grouping*")) == ["round/1/grouping", "round/1/grouping/again"]
    one, other = (
        list_shown_positions(gateway.asked(f"round/1/grouping{each}").prompt) for each in ("", "/again")
    )
    assert list(one.values()) == list(other.values())[::-1]
    assert state.current_round == rounds


async def test_an_agent_with_a_record_is_asked_once(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.ratings = {"judge": Rating(agent_id="judge", judged_answers=12)}
    gateway.grouping = group_in_turn(put_together)
    assert (await hold_debate(orchestrator, gateway)).current_round == 1
    assert gateway.steps("round/1/grouping*") == ["round/1/grouping"]


@pytest.mark.usefixtures("short_restarts")
async def test_an_agent_of_which_no_record_can_be_looked_up_is_asked_twice(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.weights = None
    gateway.grouping = group_in_turn(put_together)
    assert (await hold_debate(orchestrator, gateway)).current_round == 1
    assert len(gateway.steps("round/1/grouping*")) == 2


async def test_nobody_is_asked_about_equal_positions(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.critic = lambda _step, _agent: SILENT
    gateway.text = lambda _step, agent: (
        f"Text.\nPosition: {'Use Kafka.' if agent == 'ada' else '**use** Kafka'}"
    )
    await get_closed(orchestrator, await create(orchestrator, rounds=2, termination=AGREE))
    assert not gateway.steps("round/*/grouping*")


async def test_an_agent_without_a_position_is_asked_for_it_once(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.critic = lambda _step, _agent: SILENT
    gateway.text = lambda step, agent: (
        f"Position: what {agent} holds" if "/position/" in step or agent == "bo" else "Only a text."
    )
    await get_closed(orchestrator, await create(orchestrator, rounds=2, termination=AGREE))
    assert gateway.steps("round/*/position/*") == ["round/1/position/ada"]
    assert [each.position for each in unsure.asked[0].positions] == ["what ada holds", "what bo holds"]


async def test_a_debate_of_fixed_rounds_asks_nobody_about_agreement(
    orchestrator: Orchestrator, gateway: ScriptedGateway, unsure: Unsure
) -> None:
    gateway.text = lambda _step, _agent: "Only a text."
    await get_closed(orchestrator, await create(orchestrator, rounds=2))
    assert not gateway.steps("round/*/position/*")
    assert not gateway.steps("round/*/grouping*")
