"""What a debate costs in calls, by the ledger of the server that answers them, and what it was expected to cost."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.formats.panel.estimate import estimate_panel
from parley.orchestrator.log.envelope import Envelope
from parley.v1.convergence_pb2 import (
    GroupPositionsRequest,
    GroupPositionsResponse,
    PositionGroup,
    UnsurePair,
)
from parley.v1.event_pb2 import DebateCreated, StepSucceeded
from parley.v1.panel_pb2 import EFFORT_QUICK, EFFORT_STANDARD, EFFORT_THOROUGH
from tests.integration.orchestrator.before_models import open_stage_before_models
from tests.support.model_server import Call, Match, ModelServer, Rule
from tests.support.orchestration import make_debate, panel_settings

ON_TOP = {"requirements", "summary"}
"""What is asked beside the formula: the list of requirements, once, and summaries."""


def formula(agents: int, rounds: int, *, carry: bool) -> int:
    """The calls of so many agents and rounds, the judge's included."""
    critiques = agents * (agents - 1)
    if carry:
        return agents + rounds * critiques + rounds * agents + 1
    return rounds * (agents + critiques + agents) + 1


def activities(events: list[Envelope]) -> Counter[str]:
    steps = [event.payload for event in events if isinstance(event.payload, StepSucceeded)]
    return Counter(step.work.activity for step in steps if step.work.agent_id)


def estimate_calls(debate: DebateCreated) -> tuple[int, int]:
    estimate = estimate_panel(debate)
    return estimate.min_calls, estimate.max_calls


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize(
    "agents", [1, 2, 3, *(pytest.param(count, marks=pytest.mark.long) for count in (4, 5, 6, 7))]
)
async def test_calls_of_one_to_five_rounds_are_those_of_the_formula(
    agents: int, *, carry: bool, tmp_path: Path
) -> None:
    async with (
        ModelServer(states_positions=True) as server,
        open_stage_before_models(tmp_path, server) as stage,
        stage.replica() as replica,
    ):
        for rounds in (1, 2, 5) if agents == 2 else (1, 5):  # every round more costs the same
            server.ledger.reset()
            spec = make_debate(agents, rounds, carry_forward=carry)
            events = await stage.comes_to(await replica.create(spec), "COMPLETED", within=60)
            made = activities(events)
            on_top = sum(made[each] for each in ON_TOP)
            assert made["requirements"] == 1
            assert made.total() - on_top == formula(agents, rounds, carry=carry), rounds
            assert len(server.ledger.calls) == made.total(), "every call is a step, and the other way round"
            assert estimate_calls(spec) == (made.total() - made["summary"],) * 2


def unsure_until_asked(request: GroupPositionsRequest) -> GroupPositionsResponse:
    """Convergence that cannot tell whether drafts agree until an agent was asked, and then goes by what it said."""
    agents = sorted(each.agent_id for each in request.positions)
    apart = not request.settled or not all(each.same for each in request.settled)
    groups = [[each] for each in agents] if apart else [agents]
    pairs = [] if request.settled else list(combinations(agents, 2))
    return GroupPositionsResponse(
        groups=[PositionGroup(agent_ids=each, representative_agent_id=each[0]) for each in groups],
        certain=bool(request.settled),
        unsure=[UnsurePair(agent_id=one, other_agent_id=other) for one, other in pairs],
    )


def rules(*, agree: bool, severities: Sequence[int]) -> list[Rule]:
    """Models whose drafts agree, or not, and whose critics raise an issue each, of a severity that goes by the round."""
    groups = [["P1", "P2", "P3"]] if agree else [["P1"], ["P2"], ["P3"]]

    def criticize(call: Call) -> str:
        number = int(call.prompt.partition("This is round ")[2][0])
        issue = {"issue": "It may fail.", "severity": severities[number - 1], "suggestion": "Mend it."}
        return json.dumps({"issues": [issue], "agrees": True, "remarks": ""})

    return [
        Rule(
            Match(prompt="are positions that agents take on the question. Group them."),
            answer={"groups": groups, "cannot_be_told": []},
        ),
        Rule(Match(prompt="Criticize this proposal"), answer=criticize),
    ]


ROUND = {"proposal": 3, "critique": 6, "refinement": 3}
ONCE = {"requirements": 1, "synthesis": 1}


def rounds_and(number: int, **more: int) -> dict[str, int]:
    return {**ONCE, **{name: number * count for name, count in ROUND.items()}, **more}


@pytest.mark.parametrize(
    ("settings", "agree", "severities", "calls", "expected"),
    [
        ({"effort": EFFORT_QUICK}, True, (4,), {**ONCE, "proposal": 3}, (5, 5)),
        ({"effort": EFFORT_STANDARD}, True, (4,), rounds_and(1, grouping=2), (14, 42)),
        ({}, True, (4,), rounds_and(1, grouping=2), (14, 42)),
        ({}, True, (5, 4), rounds_and(2, grouping=4), (14, 42)),
        ({}, False, (4, 4, 4), rounds_and(3, grouping=4), (14, 42)),
        ({"effort": EFFORT_THOROUGH}, True, (4, 4, 4), rounds_and(3), (38, 38)),
        ({"rounds": 3}, True, (4, 4, 4), rounds_and(3), (38, 38)),
        ({"rounds": 3, "carry_forward": True}, True, (4, 4, 4), rounds_and(3, proposal=3), (32, 32)),
    ],
    ids=[
        "quick",
        "standard, nothing disputed",
        "by default, nothing disputed",
        "by default, an issue of the first round",
        "by default, three positions",
        "thorough",
        "three rounds",
        "three rounds, carried forward",
    ],
)
async def test_calls_of_three_agents_by_effort(
    tmp_path: Path,
    settings: dict[str, Any],
    agree: bool,
    severities: Sequence[int],
    calls: dict[str, int],
    expected: tuple[int, int],
) -> None:
    async with (
        ModelServer(states_positions=True, rules=rules(agree=agree, severities=severities)) as server,
        open_stage_before_models(tmp_path, server) as stage,
        stage.replica() as replica,
    ):
        stage.gateway.group_by = unsure_until_asked
        spec = make_debate(3, settings=panel_settings(**settings))
        events = await stage.comes_to(await replica.create(spec), "COMPLETED", within=60)
    made = activities(events)
    assert made == calls
    assert len(server.ledger.calls) == made.total()
    assert estimate_calls(spec) == expected
    least, most = expected
    assert least <= made.total() <= most
