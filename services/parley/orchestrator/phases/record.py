"""What other services get of a finished debate: memory its conclusion, the ratings its match.

The match holds scores, answers that were right or wrong, how agents did in phases, and how they met. All of it
follows from the outcome and the log, so that every owner of the debate sends the same.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from google.protobuf.message import Message

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.phases.count_votes import list_alike
from parley.orchestrator.phases.critique import CRITIQUE
from parley.orchestrator.phases.propose import PROPOSAL
from parley.orchestrator.phases.remember import create_record
from parley.orchestrator.phases.scoring import SOUND
from parley.orchestrator.phases.vote import VOTE
from parley.orchestrator.phases.whole_debate import read_whole_debate
from parley.runtime.agent_names import Names
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1.critique_pb2 import ISSUE_STATUS_REJECTED, ISSUE_STATUS_TAKEN_UP, Critique
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import StepFailed, StepSucceeded
from parley.v1.ratings_pb2 import Encounter, JudgedAnswer, MatchResult, PhaseResult, RecordMatchRequest
from parley.v1.voting_pb2 import VOTE_BALLOTS_FIRST_DRAFTS, Decision, Vote

_FULL_MARKS: Final = 10.0


def match_of(
    debate_id: str, domain: str, outcome: Outcome, replies: Sequence[StepSucceeded]
) -> RecordMatchRequest:
    """Return the match that a debate was, of the agents that were scored.

    Args:
        debate_id: Whose match it is.
        domain: What ratings are kept by.
        outcome: With the judge's scores, 0 to 10, and the last vote if there was one.
        replies: What agents have answered.
    """
    scores = {each.agent_id: each.score for each in outcome.scores}
    vote = _last_vote(outcome)
    ballots = _ballots_as_answers(vote, scores) if vote else []
    answers = (
        _drafts_as_answers(outcome.arena.decision, ballots, vote, scores)
        if vote
        else _work_as_answers(scores)
    )
    return RecordMatchRequest(
        debate_id=debate_id,
        domain=domain,
        results=[MatchResult(agent_id=agent, score=score) for agent, score in sorted(scores.items())],
        answers=answers,
        phases=[*_proposals(scores), *_critiques(replies, scores), *_ballots(ballots)],
        encounters=_encounters(replies, vote, scores),
    )


def _last_vote(outcome: Outcome) -> Vote | None:
    return outcome.arena.votes[-1] if outcome.HasField("arena") and outcome.arena.votes else None


def _ballots_as_answers(vote: Vote, scores: Mapping[str, float]) -> list[JudgedAnswer]:
    """Return each ballot as an answer: right if nothing that the judge, who does not see the vote, scored beats its choice.

    A choice that was counted as one with others is as good as the best of them.
    """
    best = max(scores.values())
    judged = []
    for ballot in vote.ballots:
        chosen = [scores[each] for each in list_alike(vote, ballot.choice_agent_id) if each in scores]
        if chosen and ballot.agent_id in scores:
            right = max(chosen) == best
            judged.append(JudgedAnswer(agent_id=ballot.agent_id, right=right, confidence=ballot.confidence))
    return judged


def _drafts_as_answers(
    decision: Decision, ballots: list[JudgedAnswer], vote: Vote, scores: Mapping[str, float]
) -> list[JudgedAnswer]:
    """Return each first draft as an answer, if the judge has chosen among them: they, and not the ballots, are weighed by it.

    How sure its author was is known if it voted for a proposal that takes the same position. Otherwise, the ballots.
    """
    chosen = decision.judge_ballot.choice_agent_id
    if not chosen or decision.ballots != VOTE_BALLOTS_FIRST_DRAFTS:
        return ballots
    cast = {each.agent_id: each for each in vote.ballots}
    judged = []
    for position in decision.positions:
        for agent in position.first_agent_ids:
            stays = agent in cast and cast[agent].choice_agent_id in position.last_agent_ids
            said = cast[agent].confidence if stays else None
            if agent in scores:
                judged.append(
                    JudgedAnswer(agent_id=agent, right=chosen in position.first_agent_ids, confidence=said)
                )
    return sorted(judged, key=lambda each: each.agent_id)


def _work_as_answers(scores: Mapping[str, float]) -> list[JudgedAnswer]:
    """Return each agent's own work as its answer: right if the judge found it sound. How sure it was, it did not say."""
    return [JudgedAnswer(agent_id=agent, right=score >= SOUND) for agent, score in sorted(scores.items())]


def _proposals(scores: Mapping[str, float]) -> Iterator[PhaseResult]:
    for agent, score in sorted(scores.items()):
        yield PhaseResult(agent_id=agent, phase=PROPOSAL.name, score=score)


def _ballots(answers: Sequence[JudgedAnswer]) -> Iterator[PhaseResult]:
    for each in answers:
        yield PhaseResult(agent_id=each.agent_id, phase=VOTE.name, score=_FULL_MARKS if each.right else 0.0)


def _critiques(replies: Sequence[StepSucceeded], agents: Collection[str]) -> Iterator[PhaseResult]:
    """Yield how much of what a critic raised was taken up by authors that said so or that they do not."""
    taken_up: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for each in replies:
        for answer in each.reply.issue_answers:
            taken_up[answer.critic_agent_id] += answer.status == ISSUE_STATUS_TAKEN_UP
            answered[answer.critic_agent_id] += answer.status in {
                ISSUE_STATUS_TAKEN_UP,
                ISSUE_STATUS_REJECTED,
            }
    for critic in sorted(agents):
        if answered[critic]:
            score = _FULL_MARKS * taken_up[critic] / answered[critic]
            yield PhaseResult(agent_id=critic, phase=CRITIQUE.name, score=score)


def _encounters(
    replies: Sequence[StepSucceeded], vote: Vote | None, agents: Collection[str]
) -> list[Encounter]:
    """Return how often each pair agreed: critics of each other's work, and voters for it."""
    met: defaultdict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    for each in replies:
        agrees = _agrees(each.reply.critique) if each.reply.HasField("critique") else None
        if agrees is not None:
            met[_pair(each.work.agent_id, each.work.target_agent_id)][agrees] += 1
    for ballot in vote.ballots if vote else ():
        met[_pair(ballot.agent_id, ballot.choice_agent_id)][True] += 1
    return [
        Encounter(agent_id=one, other_agent_id=other, agreements=times[True], disagreements=times[False])
        for (one, other), times in sorted(met.items())
        if one != other and one in agents and other in agents
    ]


def _agrees(critique: Critique) -> bool | None:
    """Return whether a critic agrees, as it said or else since it found nothing; None if that is not known."""
    if critique.HasField("agrees"):
        return critique.agrees
    return None if critique.issues or critique.remarks else True


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


RATINGS = Activity("ratings", "recording the ratings")
MEMORY = Activity("memory", "remembering the debate")


async def record(debate: Debate, outcome: Outcome, concluded_at: datetime) -> None:
    """Record the outcome with ratings and memory, each once; a service that is away is waited for.

    A debate in which fewer than two agents were scored is no match. A demonstration is neither rated nor remembered.
    """
    spec, services, replies = debate.spec, debate.services, debate.replies
    if debate.is_demonstration:
        return
    async with asyncio.TaskGroup() as tasks:
        if len(outcome.scores) > 1:
            match = match_of(debate.id, spec.domain, outcome, replies)
            tasks.create_task(_record(debate, RATINGS, match, lambda: services.ratings.record_match(match)))
        names = Names(debate.participants, debate.judge)
        make_record = partial(
            create_record, debate.id, spec, outcome, replies, names, debate.documents.sources, concluded_at
        )
        past = await read_whole_debate(debate, outcome, make_record)
        tasks.create_task(_record(debate, MEMORY, past, lambda: services.memory.record_debate(past)))


async def _record(
    debate: Debate, activity: Activity, request: Message, call: Callable[[], Awaitable[Message]]
) -> None:
    key = f"{AFTER_THE_ANSWER}{activity.name}"
    outcome = await debate.call_service(key, activity.create_work(), request, call)
    if isinstance(outcome, StepFailed):
        debate.warn(key, f"the outcome was not recorded: {outcome.message}")
