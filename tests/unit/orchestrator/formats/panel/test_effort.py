"""How many rounds a panel runs: as long as something is disputed, drafts alone, or all of them."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.orchestrator.formats.panel.estimate import estimate_panel
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.phases.disputes import list_disputes
from parley.v1.convergence_pb2 import GroupPositionsResponse, PositionGroup, UnsurePair
from parley.v1.critique_pb2 import ISSUE_STATUS_REJECTED, ISSUE_STATUS_TAKEN_UP
from parley.v1.debate_pb2 import STOP_REASON_UNDISPUTED, DraftGroup, DraftGroups
from parley.v1.event_pb2 import RoundAssessed, RoundsEnded
from parley.v1.panel_pb2 import (
    EFFORT_QUICK,
    SYNTHESIS_METHOD_JUDGE,
    SYNTHESIS_METHOD_MERGE,
    SYNTHESIS_METHOD_VOTING,
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_QUALITY,
    TERMINATION_RULE_UNDISPUTED,
    SynthesisMethod,
    Termination,
)
from tests.support.debate_logs import check_log
from tests.support.orchestration import Backstage, Replica, backstage, make_debate
from tests.support.scripted_answers import judgement
from tests.support.scripted_faults import refusal
from tests.support.scripted_gateway import ScriptedGateway
from tests.unit.orchestrator.model.test_open_issues import make_critique, make_refinement

UNDISPUTED = Termination(rule=TERMINATION_RULE_UNDISPUTED)
TOGETHER = DraftGroups(groups=[DraftGroup(agent_ids=["ada", "bo"])], certain=True)
APART = DraftGroups(groups=[DraftGroup(agent_ids=[each]) for each in ("ada", "bo")], certain=True)
GUESSED = DraftGroups(groups=TOGETHER.groups)
DRAFTS = [make_refinement("ada", 1), make_refinement("bo", 1)]
CALM = [make_critique("bo", "ada", 1, 4), make_critique("ada", "bo", 1, 3)]
PROSE = make_critique("bo", "ada", 1, agrees=None)
"""A critique that names no single issue and does not say whether its critic agrees."""


@pytest.mark.parametrize(
    ("groups", "made", "disputes"),
    [
        (TOGETHER, CALM, []),
        (TOGETHER, [*CALM, make_refinement("ada", 1, ("bo", 1, ISSUE_STATUS_REJECTED, ""))], []),
        (
            TOGETHER,
            [
                make_critique("bo", "ada", 1, 5),
                make_critique("ada", "bo", 1, 9),
                make_refinement("ada", 1, ("bo", 1, ISSUE_STATUS_TAKEN_UP, "")),
                make_refinement("bo", 1, ("ada", 1, ISSUE_STATUS_TAKEN_UP, "")),
            ],
            [],
        ),
        (APART, CALM, ["the drafts take 2 positions"]),
        (GUESSED, CALM, ["whether the drafts take one position cannot be told"]),
        (None, CALM, ["whether the drafts take one position cannot be told"]),
        (
            TOGETHER,
            [
                make_critique("bo", "ada", 1, 5),
                make_critique("ada", "bo", 1, None),
                make_refinement("ada", 1, ("bo", 1, ISSUE_STATUS_REJECTED, "it costs too much")),
            ],
            ["2 issues are open with a severity of 5 or more"],
        ),
        (TOGETHER, CALM[:1], ["1 draft is criticized by no agent"]),
        (TOGETHER, [PROSE, CALM[1]], ["1 critique is in prose, without single issues"]),
        (APART, [], ["the drafts take 2 positions", "2 drafts are criticized by no agent"]),
    ],
    ids=[
        "nothing is severe",
        "a rejected issue is not severe",
        "what is severe is taken up",
        "two positions",
        "positions that are a guess",
        "positions that are unknown",
        "rejected with a reason, or without a severity and an answer",
        "no critique of a draft",
        "a critique in prose",
        "no critique at all",
    ],
)
def test_what_is_open_or_unknown_is_disputed(
    groups: DraftGroups | None, made: list[Contribution], disputes: list[str]
) -> None:
    assert list(list_disputes(DRAFTS, groups, made)) == disputes


def rounds_end(events: Sequence[Envelope]) -> RoundsEnded:
    (ended,) = [each.payload for each in events if isinstance(each.payload, RoundsEnded)]
    return ended


def answer_form(schema: str) -> str:
    """An answer of any form that is asked of a judge or a voter; positions that are compared cannot be told apart."""
    asked = json.loads(schema)["properties"]
    if "scores" in asked:
        return judgement(schema)
    said = {
        "choice": 1,
        "confidence": 0.8,
        "reason": "It holds.",
        "objects": False,
        "objection": "",
        "groups": [],
    }
    return json.dumps({name: said[name] for name in asked})


class _Course:
    """How a debate goes, round by round: whether its drafts agree, how severe an issue is, and whether it is taken up."""

    def __init__(self, rounds: Sequence[tuple[bool | None, int, bool]]) -> None:
        self.rounds = rounds
        self.compared = 0

    @property
    def undisputed(self) -> int:
        """The first round in which nothing is disputed; one past the last if there is none."""
        calm = [agree is True and (severity < 5 or taken) for agree, severity, taken in self.rounds]
        return calm.index(True) + 1 if True in calm else len(calm) + 1

    def direct(self, gateway: ScriptedGateway) -> None:
        gateway.group = self._group
        gateway.critic = self._criticize
        gateway.text = self._write
        gateway.judge = answer_form

    def _group(self) -> GroupPositionsResponse:
        agree, _, _ = self.rounds[self.compared]
        self.compared += 1
        members = [["ada", "bo"]] if agree else [["ada"], ["bo"]]
        groups = [PositionGroup(agent_ids=each, representative_agent_id=each[0]) for each in members]
        unsure = [UnsurePair(agent_id="ada", other_agent_id="bo")] if agree is None else []
        return GroupPositionsResponse(groups=groups, certain=agree is not None, unsure=unsure)

    def _criticize(self, step: str, _agent: str) -> str:
        _, severity, _ = self._round(step)
        issue = {"issue": "It may fail.", "severity": severity, "suggestion": "Mend it."}
        return json.dumps({"issues": [issue], "agrees": False, "remarks": ""})

    def _write(self, step: str, agent: str) -> str:
        _, _, taken = self._round(step)
        critic = "B" if agent == "ada" else "A"
        answer = "taken up" if taken else "not taken up, because it holds"
        answers = f"\n## Answers to issues\n{critic}.1: {answer}" if "/refine/" in step else ""
        return f"A text.\nPosition: a stand{answers}"

    def _round(self, step: str) -> tuple[bool | None, int, bool]:
        return self.rounds[int(step.split("/")[1]) - 1]


@settings(max_examples=10, deadline=None)
@given(
    course=st.lists(
        st.tuples(st.sampled_from([True, True, False, None]), st.integers(0, 10), st.booleans()),
        min_size=1,
        max_size=3,
    ).map(_Course),
    carry=st.booleans(),
)
def test_rounds_go_on_as_long_as_something_is_disputed_and_never_past_the_last(
    course: _Course, carry: bool
) -> None:
    last = len(course.rounds)

    async def hold() -> tuple[ScriptedGateway, list[Envelope]]:
        with tempfile.TemporaryDirectory() as folder:
            async with backstage(Path(folder)) as stage, stage.replica() as replica:
                course.direct(stage.gateway)
                debate = make_debate(2, last, termination=UNDISPUTED, carry_forward=carry)
                return stage.gateway, await stage.comes_to(await replica.create(debate), "COMPLETED")

    gateway, events = asyncio.run(hold())
    check_log(events)
    held = min(course.undisputed, last)
    for number in range(1, last + 1):
        expected = (
            2 if number <= held else 0
        )  # each round whole, and none after the one in which all is settled
        assert len(gateway.steps(f"round/{number}/critique/*")) == expected
        assert len(gateway.steps(f"round/{number}/refine/*")) == expected
    # The first drafts are compared in any case, later ones only where that may end the rounds.
    assert course.compared == 1 + sum(number < last for number in range(2, held + 1))
    is_early = held < last
    assert (rounds_end(events).reason == STOP_REASON_UNDISPUTED) is is_early
    assessed = [each.payload.ends_rounds for each in events if isinstance(each.payload, RoundAssessed)]
    assert assessed == [False] * (held - is_early if is_early else last - 1) + [True] * is_early


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"rounds": 1, "demonstration": True}, (7, 7)),
        ({"rounds": 1, "synthesis_method": SYNTHESIS_METHOD_VOTING}, (9, 9)),
        ({"rounds": 1, "synthesis_method": SYNTHESIS_METHOD_MERGE}, (10, 10)),
        ({"rounds": 3, "termination": Termination(rule=TERMINATION_RULE_QUALITY)}, (9, 22)),
        ({"rounds": 3, "termination": Termination(rule=TERMINATION_RULE_CONVERGENCE)}, (8, 24)),
        ({"rounds": 1, "effort": EFFORT_QUICK}, (4, 4)),
        ({"count": 1, "rounds": 3, "termination": UNDISPUTED}, (4, 4)),
    ],
    ids=["demonstration", "voting", "merge", "quality", "convergence", "quick", "one agent"],
)
async def test_a_debate_makes_as_many_calls_as_were_expected(
    stage: Backstage, replica: Replica, fields: dict[str, Any], expected: tuple[int, int]
) -> None:
    stage.gateway.judge = answer_form
    made = make_debate(**{"count": 2, **fields})
    estimate = estimate_panel(made)
    assert (estimate.min_calls, estimate.max_calls) == expected
    await stage.comes_to(await replica.create(made), "COMPLETED")
    assert estimate.min_calls <= len(stage.gateway.steps()) <= estimate.max_calls


async def test_the_judge_reads_that_nothing_was_disputed(stage: Backstage, replica: Replica) -> None:
    _Course([(True, 2, False)] * 3).direct(stage.gateway)
    events = await stage.comes_to(
        await replica.create(make_debate(2, 3, termination=UNDISPUTED)), "COMPLETED"
    )
    assert rounds_end(events).explanation == (
        "nothing is disputed, since the drafts take one position and no issue of severity 5 or more is open"
    )
    assert "1 of at most 3 rounds was held. They ended early: nothing is disputed, since" in " ".join(
        stage.gateway.asked("synthesis").prompt.split()
    )


async def test_a_round_without_critiques_does_not_end_the_rounds(stage: Backstage, replica: Replica) -> None:
    _Course([(True, 0, True)] * 2).direct(stage.gateway)
    stage.gateway.fail("round/1/critique/*", refusal())
    await stage.comes_to(await replica.create(make_debate(2, 2, termination=UNDISPUTED)), "COMPLETED")
    assert len(stage.gateway.steps("round/2/refine/*")) == 2


async def test_one_agent_alone_disputes_nothing_after_a_round(stage: Backstage, replica: Replica) -> None:
    events = await stage.comes_to(
        await replica.create(make_debate(1, 3, termination=UNDISPUTED)), "COMPLETED"
    )
    assert stage.gateway.steps("round/*") == ["round/1/propose/ada", "round/1/refine/ada"]
    assert rounds_end(events).reason == STOP_REASON_UNDISPUTED


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (SYNTHESIS_METHOD_JUDGE, {"synthesis"}),
        (SYNTHESIS_METHOD_VOTING, {f"vote/{each}" for each in ("ada", "bo", "cy")}),
        (SYNTHESIS_METHOD_MERGE, {"merge", *(f"merge/objection/{each}" for each in ("ada", "bo", "cy"))}),
    ],
    ids=["judge", "voting", "merge"],
)
async def test_quick_asks_for_independent_drafts_and_the_answer(
    stage: Backstage, replica: Replica, method: SynthesisMethod.ValueType, answer: set[str]
) -> None:
    stage.gateway.judge = answer_form
    made = make_debate(3, 0, effort=EFFORT_QUICK, synthesis_method=method)
    events = await stage.comes_to(await replica.create(made), "COMPLETED")
    check_log(events)
    drafts = {f"round/1/propose/{each}" for each in ("ada", "bo", "cy")}
    assert set(stage.gateway.steps()) - answer == {"requirements", *drafts}
    if method == SYNTHESIS_METHOD_JUDGE:
        assert "No agent has examined the drafts: look yourself" in stage.gateway.asked("synthesis").prompt
    assert rounds_end(events).explanation == (
        "only independent drafts were asked for, without critiques and refinements"
    )
