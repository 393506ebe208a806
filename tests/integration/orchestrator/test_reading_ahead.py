"""Positions that are read while others are still asked: nothing follows from it, whether or not it works."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from parley.orchestrator.log.envelope import Envelope
from parley.v1.convergence_pb2 import CONVERGENCE_VERDICT_CONTINUING, AssessRequest, AssessResponse
from parley.v1.event_pb2 import Concluded
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import backstage, check_log
from tests.support.scripted_gateway import ScriptedGateway

LAST = "round/1/rebut/user-experience"


class Assessing:
    """Convergence that keeps what it is asked, and may fail at what is read ahead."""

    def __init__(self, *, fails_ahead: bool = False) -> None:
        self.asked: list[AssessRequest] = []
        self.asked_ahead = asyncio.Event()
        self._fails_ahead = fails_ahead

    def __call__(self, request: AssessRequest) -> AssessResponse:
        self.asked.append(request)
        if len(request.positions) == 2:
            self.asked_ahead.set()
            if self._fails_ahead:
                raise RuntimeError
        return AssessResponse(verdict=CONVERGENCE_VERDICT_CONTINUING, agreement_percent=33)


async def held(folder: Path, gateway: ScriptedGateway, ahead: asyncio.Event | None) -> list[Envelope]:
    """The log of a debate whose last debater is not answered before the others were read ahead."""
    hold = gateway.hold(LAST)
    if ahead is None:
        hold.release()
    async with backstage(folder, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(moderated_spec(max_rounds=1))
        if ahead is not None:
            async with asyncio.timeout(30):
                await ahead.wait()
            hold.release()
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    return events


def keys(events: Sequence[Envelope]) -> list[str]:
    return sorted(each.key for each in events)


@pytest.mark.parametrize("fails_ahead", [False, True])
async def test_what_stands_is_read_while_the_last_debater_is_asked_and_nothing_else_changes(
    tmp_path: Path, fails_ahead: bool
) -> None:
    assessing, plain = Assessing(fails_ahead=fails_ahead), Assessing()
    gateway = ModeratedScript().gateway()
    gateway.assess = assessing
    events = await held(tmp_path / "ahead", gateway, assessing.asked_ahead)
    ahead, whole = assessing.asked
    assert [each.agent_id for each in ahead.positions] == ["simplicity-advocate", "security-advocate"]
    assert [each.position for each in ahead.positions] == [each.position for each in whole.positions[:2]]

    gateway = ModeratedScript().gateway()
    gateway.assess = plain
    without = await held(tmp_path / "plain", gateway, None)
    # Nothing holds the last one back here, so that what is read ahead may come late, and outcomes in any order.
    assert [each for each in plain.asked if len(each.positions) == len(whole.positions)] == [whole]
    assert keys(events) == keys(without)
    outcomes = [each.payload.outcome for each in (*events, *without) if isinstance(each.payload, Concluded)]
    assert outcomes[0] == outcomes[1]
