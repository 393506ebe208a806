"""Whatever a judge writes, a debate whose contributions stand ends with its answer, or with an agent's work that is marked as such."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from parley.orchestrator.log.envelope import Envelope
from parley.v1.event_pb2 import StepFailed, StepSucceeded
from parley.v1.panel_pb2 import EFFORT_QUICK
from tests.integration.orchestrator.before_models import open_stage_before_models
from tests.integration.orchestrator.lenient_answers import WHOLE
from tests.integration.orchestrator.odd_judge_answers import ODD_ANSWERS, OddAnswer
from tests.integration.orchestrator.test_lenient_answers import (
    JUDGE,
    UNLISTED,
    read,
    warnings_of,
)
from tests.support.debate_logs import check_log, outcome_of
from tests.support.model_server import Call, ModelServer, Rule
from tests.support.orchestration import make_debate, panel_settings

_NAMES = list(ODD_ANSWERS)
_MAX_CALLS = 2


def _case_of(prompt: str) -> int:
    found = re.search(r"case (\d+)\b", prompt)
    assert found is not None
    return int(found[1])


def _answer(call: Call) -> str:
    said = ODD_ANSWERS[_NAMES[_case_of(call.prompt)]].said
    return said if isinstance(said, str) else said(call)


def _find_fault(odd: OddAnswer, events: Sequence[Envelope], calls: int) -> str:
    """Return what is wrong with what came of an odd answer; empty if nothing is."""
    outcome = outcome_of(list(events))
    if calls > _MAX_CALLS:
        return f"the judge was asked {calls} times"
    if odd.is_whole:
        return "" if read(outcome) == WHOLE and not outcome.HasField("stand_in") else f"it came to {outcome}"
    if odd.keeps:
        is_marked = bool(warnings_of(list(events)))
        return "" if odd.keeps in outcome.description and is_marked else f"it came to {outcome}"
    works = [
        each.payload.reply.text
        for each in events
        if isinstance(each.payload, StepSucceeded) and each.payload.work.activity == "proposal"
    ]
    if not outcome.HasField("stand_in") or not any(outcome.description in each for each in works):
        return f"nothing stands in for it: {outcome}"
    failed = [each.payload for each in events if isinstance(each.payload, StepFailed)]
    is_kept = not isinstance(odd.said, str) or not odd.said.strip() or "think" in odd.said
    if not is_kept and not any(each.partial_text.strip() for each in failed):
        return "what the judge wrote is lost"
    return ""


async def test_none_of_36_ways_in_which_a_judge_deviates_from_its_form_loses_a_debate(tmp_path: Path) -> None:
    assert len(ODD_ANSWERS) >= 36
    async with (
        ModelServer(rules=[UNLISTED, Rule(JUDGE, answer=_answer)]) as server,
        open_stage_before_models(tmp_path, server) as stage,
        stage.replica() as replica,
    ):
        debates = [
            await replica.create(
                make_debate(
                    2,
                    question=f"How many processes, case {number}?",
                    settings=panel_settings(effort=EFFORT_QUICK),
                )
            )
            for number in range(len(_NAMES))
        ]
        ended = await asyncio.gather(*(stage.comes_to(each, "COMPLETED", within=120) for each in debates))
        asked = [
            _case_of(call.prompt)
            for call in server.ledger.calls
            if JUDGE.prompt and JUDGE.prompt in call.prompt
        ]
    faults = {
        name: fault
        for number, name in enumerate(_NAMES)
        if (fault := _find_fault(ODD_ANSWERS[name], ended[number], asked.count(number)))
    }
    assert not faults
    for events in ended:
        check_log(events)
