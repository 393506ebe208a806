"""A debate in which no agent can answer ends at the first refusal; one in which some can answer goes on with these."""

from collections.abc import Sequence

import pytest

from parley.orchestrator.log.envelope import Envelope
from parley.v1.debate_pb2 import DebateFailure
from parley.v1.event_pb2 import DebateFailed
from tests.support.debate_logs import check_log
from tests.support.orchestration import Backstage, Replica, agent, make_debate
from tests.support.scripted_faults import refusal

FIRST = "requirements"
"""The first step of a panel's judge; it needs no other."""
APART = (agent("ada", routes=["one/m"]), agent("bo", routes=["two/m"]), agent("cy", routes=["three/m"]))


def failure(events: Sequence[Envelope]) -> DebateFailure:
    (failed,) = [event.payload for event in events if isinstance(event.payload, DebateFailed)]
    return failed.failure


@pytest.mark.parametrize(
    "reason", ["PROVIDER_AUTH", "PROVIDER_QUOTA", "PROVIDER_UNREACHABLE", "UNKNOWN_ROUTE"]
)
async def test_the_first_refusal_ends_a_debate_whose_agents_all_use_the_route_that_refused(
    reason: str, stage: Backstage, replica: Replica
) -> None:
    stage.gateway.hold("round/1/propose/*")
    stage.gateway.fail(FIRST, refusal(reason, "p/m: no"))
    events = await stage.comes_to(await replica.create(make_debate(3, 2)), "FAILED")
    failed = failure(events)
    assert (failed.reason, failed.message) == (reason, "p/m: no")
    assert (failed.agent_id, failed.phase) == ("judge", "list of requirements")
    assert list(failed.steps) == [FIRST]


async def test_it_is_resumed_once_the_key_is_right(stage: Backstage, replica: Replica) -> None:
    stage.gateway.fail("*", refusal("PROVIDER_AUTH"))
    debate = await replica.create(make_debate(2, 1))
    await stage.comes_to(debate, "FAILED")
    stage.gateway.mend()
    await replica.intervene(debate, "resume")
    check_log(await stage.comes_to(debate, "COMPLETED"))
    assert stage.gateway.steps().count(FIRST) == 2


async def test_a_refusal_from_before_it_was_resumed_says_nothing_about_the_routes_now(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("*", refusal("PROVIDER_AUTH"))
    debate = await replica.create(make_debate(agents=APART))
    await stage.comes_to(debate, "FAILED")
    before = (await stage.kinds(debate)).count("step_failed")
    stage.gateway.mend()
    stage.gateway.fail(FIRST, refusal("PROVIDER_AUTH"))
    stage.gateway.fail("round/1/propose/ada", refusal("PROVIDER_AUTH"))
    others = stage.gateway.hold("round/1/propose/[bc]*")
    await replica.intervene(debate, "resume")
    await stage.has(debate, "step_failed", before + 2)
    others.release()
    check_log(await stage.comes_to(debate, "COMPLETED"))


async def test_it_goes_on_while_an_agent_with_other_routes_may_answer(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail(FIRST, refusal("PROVIDER_AUTH"))
    stage.gateway.fail("round/1/propose/cy", refusal("PROVIDER_AUTH"))
    check_log(await stage.comes_to(await replica.create(make_debate(agents=APART)), "COMPLETED"))


async def test_it_ends_once_all_routes_have_refused(stage: Backstage, replica: Replica) -> None:
    stage.gateway.fail("*", refusal("PROVIDER_AUTH", "no"))
    events = await stage.comes_to(await replica.create(make_debate(agents=APART)), "FAILED")
    assert set(failure(events).steps) >= {f"round/1/propose/{each.id}" for each in APART}


async def test_what_may_pass_does_not_end_it(stage: Backstage, replica: Replica) -> None:
    stage.gateway.fail(FIRST, refusal("PROVIDER_RATE_LIMIT"))
    check_log(await stage.comes_to(await replica.create(make_debate(2, 1)), "COMPLETED"))


async def test_a_refusal_after_an_answer_does_not_end_it(stage: Backstage, replica: Replica) -> None:
    stage.gateway.fail("round/1/critique/*", refusal("PROVIDER_AUTH"))
    check_log(await stage.comes_to(await replica.create(make_debate(2, 1)), "COMPLETED"))
