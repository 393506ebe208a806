"""The panel's rounds: what each prompt holds once, and that there is one round at least."""

from pathlib import Path

import pytest

from parley.orchestrator.model.positions import POSITION_FORM
from tests.support.debate_logs import check_log
from tests.support.orchestration import Backstage, Replica, backstage, make_debate
from tests.support.scripted_gateway import ScriptedGateway


async def test_who_refines_is_asked_for_a_position(stage: Backstage, replica: Replica) -> None:
    await stage.comes_to(await replica.create(make_debate(2, 1)), "COMPLETED")
    assert POSITION_FORM in stage.gateway.asked("round/1/refine/ada").prompt


@pytest.mark.parametrize("full", [True, False], ids=["whole debate", "own line of work"])
async def test_a_text_that_is_carried_forward_is_told_once(
    stage: Backstage, replica: Replica, full: bool
) -> None:
    spec = make_debate(2, 3, carry_forward=True, include_full_history=full)
    events = await stage.comes_to(await replica.create(spec), "COMPLETED")
    check_log(events)
    assert sorted(stage.gateway.steps("round/*/propose/*")) == ["round/1/propose/ada", "round/1/propose/bo"]
    assert stage.gateway.asked("round/3/refine/ada").prompt.count("ada answers round/1/refine/ada") == 1


@pytest.mark.parametrize("demonstration", [False, True])
async def test_rounds_that_are_ended_before_the_first_begins_are_one_round(
    tmp_path: Path, demonstration: bool
) -> None:
    gateway = ScriptedGateway()
    gateway.demonstration = demonstration
    async with backstage(tmp_path, gateway) as stage, stage.replica(max_debates=1) as replica:
        busy = gateway.hold("round/1/propose/*")
        before = await replica.create(make_debate(1, 1))
        await busy.reached.wait()
        debate = await replica.create(make_debate(2, 3, demonstration=demonstration))
        await replica.intervene(debate, "end")
        busy.release()
        await stage.comes_to(before, "COMPLETED")
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert [each.kind for each in events].count("round_started") == 1
