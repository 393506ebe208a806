"""What a debate has used: running time, tokens and money."""

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.log.replay import RecordedState
from parley.orchestrator.log.usage import Mode, RunningTime, UsageMeter, add_usage
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import Reply, Work
from parley.v1.event_pb2 import StepFailed, StepSucceeded
from tests.support.kept_logs import KEPT, read_log


def test_only_time_of_one_owner_at_work_counts_and_waits_for_providers_count_apart() -> None:
    time = RunningTime()
    time.advance(1, 100.0)
    time.mode = Mode.WORKING
    time.advance(1, 110.0)
    assert (time.work_seconds(115.0), time.total_seconds(115.0)) == (15.0, 15.0)
    time.mode = Mode.WAITING
    assert (time.work_seconds(130.0), time.total_seconds(130.0)) == (10.0, 30.0)
    time.advance(1, 140.0)
    time.mode = Mode.RESTING
    assert time.total_seconds(1000.0) == 40.0
    time.advance(1, 1000.0)
    time.mode = Mode.WORKING
    time.advance(2, 7.0)  # another owner, whose clock shows something else
    assert time.total_seconds(8.0) == 41.0


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    time = RunningTime()
    time.advance(1, 100.0)
    time.mode = Mode.WORKING
    time.advance(1, 40.0)
    assert time.total_seconds(40.0) == 0.0


def test_failed_calls_and_calls_without_a_price_count_as_far_as_they_are_known() -> None:
    meter = UsageMeter()
    for usage in (
        Usage(input_tokens=100, output_tokens=100, cost_micros=400, requests=1),
        Usage(input_tokens=50, output_tokens=50, requests=1),
    ):
        meter.add(StepSucceeded(work=Work(activity="proposal"), reply=Reply(text="x", usage=usage)))
    usage = Usage(input_tokens=10, requests=2)
    meter.add(StepFailed(work=Work(activity="critique"), reason="PROVIDER_QUOTA", message="no", usage=usage))
    assert (meter.tokens, meter.written, meter.cost_micros) == (310, 150, 400)
    assert meter.estimate_cost(100) == 200.0


def test_a_price_that_is_unknown_once_makes_the_sum_unknown_unless_no_model_was_asked() -> None:
    priced = Usage(input_tokens=1, cost_micros=5, requests=1)
    unpriced = Usage(input_tokens=1, requests=1)
    assert _sum(priced, Usage()) == _sum(Usage(), priced) == priced
    assert _sum(priced, priced).cost_micros == 10
    assert not _sum(priced, unpriced).HasField("cost_micros")
    assert not _sum(unpriced, priced).HasField("cost_micros")
    assert _sum(Usage(), Usage()) == Usage()


def _sum(*parts: Usage) -> Usage:
    total = Usage()
    for each in parts:
        add_usage(total, each)
    return total


@pytest.mark.parametrize("name", KEPT)
def test_an_owner_counts_what_the_state_of_the_debate_says_it_used(name: str) -> None:
    events = read_log(KEPT[name])
    assert RecordedState.from_events(events).usage == fold(events).usage
