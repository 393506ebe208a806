"""A small format that uses all that the engine offers, in two versions, for tests alone.

A team comes into being, a person answers questions, votes are taken until they are enough, some time is waited, an answer
is written, the participants say whether they can live with it, and a person approves it. Version 2 asks for the answer in other words.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Annotated

from msgspec.structs import replace
from pydantic import BaseModel, Field

from parley.orchestrator.engine.budget import is_transient
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.v1.agent_pb2 import Agent, Usage
from parley.v1.debate_pb2 import Approval, Outcome, Question, Questions, Reply
from parley.v1.event_pb2 import PhaseEntered, StepFailed
from tests.support.scripted_answers import judgement
from tests.support.scripted_gateway import ScriptedGateway

VOTE = Activity("vote", "votes", "Votes")
ANSWER = Activity("statement", "writes the statement")
CONSENT = Activity("consent", "says whether it can live with it", "Consent")

WAIT_SECONDS = 60.0
CONSENT_TOKENS = 600


class Ballot(BaseModel):
    """A vote, as it is asked for."""

    choice: Annotated[str, Field(min_length=1)]
    reason: str


BALLOT = AnswerShape(
    "ballot",
    Ballot,
    '{"type": "object", "properties": {"choice": {"type": "string"}, "reason": {"type": "string"}}}',
    lambda ballot: f"votes for {ballot.choice}, since {ballot.reason}",
)


_TOLD = "State that {choice} won; the budget is {budget}."
_TOLD_2 = "State in one sentence that {choice} won, with a budget of {budget}."


async def run_small(debate: Debate, told: str = _TOLD) -> Outcome:
    """Run the format; `told` is the prompt for the answer."""
    debate.record_event("state/gathering", PhaseEntered(name="GATHERING"))
    for name in ("hope", "doubt"):
        agent = Agent(id=name, name=name.title(), role="generalist")
        await debate.add_participant(f"join/{name}", agent, {})
    questions = [Question(id="budget", text="How much?"), Question(id="when", text="By when?")]
    answered = await debate.run_checkpoint(
        "questions", Questions(text="Before we begin:", questions=questions)
    )
    known = {each.question_id: each.text for each in answered.intervention.answer.answers}
    debate.record_event("state/voting", PhaseEntered(name="VOTING"))
    ballots = await debate.run_until_enough(
        "votes", {each.id: partial(_vote, debate, each) for each in debate.participants}, _is_decided
    )
    choice = _find_leading(ballots)
    await debate.run_timer("cooling", WAIT_SECONDS)
    prompt = told.format(choice=choice, budget=known.get("budget", "open"))
    reply = await debate.ask("answer", debate.judge, _task(ANSWER, "judge", prompt, is_answer=True))
    if isinstance(reply, StepFailed):
        steps = ("answer",)
        awaited = steps if is_transient(reply.reason) else ()
        raise DebateFailedError(reply.reason, reply.message, phase=ANSWER.name, steps=steps, awaited=awaited)
    dissent = await _list_dissenting(debate, reply)
    closed = await debate.run_checkpoint("approval", Approval(text=reply.text))
    approved = "approved" if closed.intervention.approve.approved else "refused"
    counted = ", ".join(sorted(ballots))
    return Outcome(
        description=f"{choice}, {approved}; counted: {counted}; without consent: {', '.join(dissent) or 'nobody'}"
    )


def _task(
    activity: Activity, agent: str, prompt: str, max_output_tokens: int = 20, *, is_answer: bool = False
) -> Task:
    work = activity.create_work(agent)
    return Task(work, (user_part(prompt),), max_output_tokens, is_answer=is_answer, seconds=30.0)


async def _vote(debate: Debate, agent: Agent) -> Ballot | StepFailed:
    prompt = f"Vote. You are agent {debate.letter(agent.id)}."
    return await debate.ask_structured(f"vote/{agent.id}", agent, _task(VOTE, agent.id, prompt), BALLOT)


def _choices(ballots: Mapping[str, Ballot | StepFailed]) -> Counter[str]:
    return Counter(each.choice for each in ballots.values() if isinstance(each, Ballot))


def _is_decided(ballots: Mapping[str, Ballot | StepFailed]) -> bool:
    return any(count >= 3 for count in _choices(ballots).values())


def _find_leading(ballots: Mapping[str, Ballot | StepFailed]) -> str:
    choices = _choices(ballots)
    return min(choices, key=lambda choice: (-choices[choice], choice), default="nothing")


async def _list_dissenting(debate: Debate, statement: Reply) -> list[str]:
    """Ask everybody whether the statement is acceptable; whoever is not asked any more has not consented."""
    prompt = f"Can you live with this? {statement.text}"
    agents = debate.participants
    replies = await asyncio.gather(
        *(
            debate.ask(f"consent/{each.id}", each, _task(CONSENT, each.id, prompt, CONSENT_TOKENS))
            for each in agents
        )
    )
    return [agent.id for agent, reply in zip(agents, replies, strict=True) if isinstance(reply, StepFailed)]


SMALL = Format(name="small", version=1, run=run_small, activities=(VOTE, CONSENT))
SMALL_2 = replace(SMALL, version=2, run=partial(run_small, told=_TOLD_2))


def formats_with_small() -> Formats:
    """Return the shipped formats and both versions of this one."""
    return Formats([*all_formats().all(), SMALL, SMALL_2])


def make_usage(step: str) -> Usage:
    """Return what an answer used: as much as it may where it is about consent, and next to nothing elsewhere."""
    written = CONSENT_TOKENS if step.startswith("consent/") else 10
    return Usage(input_tokens=10, output_tokens=written, cost_micros=7, requests=1)


def make_voting_gateway() -> ScriptedGateway:
    """Return a gateway whose agents vote for tea."""
    gateway = ScriptedGateway()
    gateway.judge = _ballot_or_judgement
    return gateway


def _ballot_or_judgement(schema: str) -> str:
    if "choice" in json.loads(schema)["properties"]:
        return json.dumps({"choice": "tea", "reason": "it is warm"})
    return judgement(schema)
