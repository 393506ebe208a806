"""Debates of the small format whose logs are kept."""

from parley.orchestrator.model.spec import DEFAULT_LIMITS
from parley.orchestrator.model.times import seconds_of
from parley.v1 import debate_pb2
from parley.v1.debate_pb2 import Intervention
from parley.v1.event_pb2 import DebateCreated
from tests.support.kept_debates.kept_debate import KeptDebate, Person
from tests.support.orchestration import (
    make_debate,
    make_limits,
    with_spec,
)
from tests.support.scripted_faults import refusal
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.small_format import (
    SMALL,
    SMALL_2,
    WAIT_SECONDS,
    make_usage,
    make_voting_gateway,
)


def _small_spec(version: str) -> DebateCreated:
    spec = make_debate(2, 1, limits=make_limits(max_tokens=1800))
    return with_spec(spec, format=version, settings=None)


def _small_gateway() -> ScriptedGateway:
    """Leave one agent out of the vote, let the answer come with the third attempt, and consent take what it may."""
    gateway = make_voting_gateway()
    gateway.usage = make_usage
    gateway.hold("vote/doubt")
    gateway.fail("answer", refusal("PROVIDER_AUTH"), attempt=1)
    gateway.fail("answer", refusal("PROVIDER_UNAVAILABLE"), attempt=2)
    return gateway


async def _steer_small(person: Person) -> None:
    await person.sees("checkpoint_opened")
    await person.lets_pass(seconds_of(DEFAULT_LIMITS.checkpoint), until="checkpoint_expired")
    await person.sees("paused")
    await person.does("resume-1", Intervention(resume=debate_pb2.Resume()))
    await person.sees("checkpoint_opened", 2)
    answers = [debate_pb2.QuestionAnswer(question_id="budget", text="ten euros")]
    await person.does("answers", Intervention(answer=debate_pb2.Answer(answers=answers)))
    await person.sees("timer_started")
    await person.lets_pass(WAIT_SECONDS, until="timer_fired")
    await person.sees("debate_failed")
    await person.does("resume-2", Intervention(resume=debate_pb2.Resume()))
    await person.sees("wait_started")
    await person.lets_pass(5, until="wait_finished")
    await person.sees("checkpoint_opened", 3)
    await person.does("approve", Intervention(approve=debate_pb2.Approve(approved=True)))


EVERYTHING = [
    KeptDebate(each.id, "everything", _small_spec, _small_gateway, _steer_small) for each in (SMALL, SMALL_2)
]
"""All that the engine offers; a person who comes too late, a failure, a wait for a provider, a limit."""
