"""How a debate fails for want of steps."""

from parley.orchestrator.phases.failing import debate_failure
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import StepFailed


def make_failure(agent: str, reason: str) -> StepFailed:
    return StepFailed(work=Work(agent_id=agent), reason=reason, message=f"{agent} said nothing")


LASTING = make_failure("ann", "PROVIDER_AUTH")
PASSING = make_failure("bo", "PROVIDER_RATE_LIMIT")


def test_a_step_that_failed_for_good_is_tried_again_on_a_resume_and_not_waited_for() -> None:
    error = debate_failure({"synthesis": LASTING}, "synthesis")

    assert (error.reason, str(error)) == ("PROVIDER_AUTH", "ann said nothing")
    assert (error.agent, error.phase) == ("ann", "synthesis")
    assert (error.steps, error.steps_to_wait_for) == (("synthesis",), ())


def test_where_enough_may_pass_these_are_waited_for_and_named() -> None:
    error = debate_failure({"a": LASTING, "b": PASSING}, "vote")

    assert (error.agent, error.reason) == ("bo", "PROVIDER_RATE_LIMIT")
    assert (error.steps, error.steps_to_wait_for) == (("a", "b"), ("b",))


def test_where_too_few_may_pass_nothing_is_waited_for_and_what_lasts_is_named() -> None:
    error = debate_failure({"b": PASSING, "a": LASTING}, "vote", needed=2)

    assert error.agent == "ann"
    assert (error.steps, error.steps_to_wait_for) == (("b", "a"), ())


def test_where_all_may_pass_and_are_too_few_the_first_is_named() -> None:
    error = debate_failure({"b": PASSING}, "vote", needed=2)

    assert error.agent == "bo"
    assert not error.steps_to_wait_for
