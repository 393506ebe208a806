"""A vote: agents choose among each other's proposals. What a ballot weighs and which choices are alike is looked up meanwhile."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model import voting
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.tasks import BALLOT, Activity, AnswerShape, Task, user_part
from parley.orchestrator.model.voting import Group, group_options
from parley.orchestrator.phases.agreement import agent_positions, group_positions
from parley.orchestrator.phases.count_votes import PANEL_TERMS, Electorate, VoteTerms, to_voting_ballots
from parley.orchestrator.phases.failing import answer_failure
from parley.orchestrator.phases.grouping import Asked
from parley.orchestrator.phases.prompting import preamble, quotation
from parley.orchestrator.phases.schemas import prompt_schema, schema_text
from parley.v1.agent_pb2 import Agent
from parley.v1.event_pb2 import StepFailed
from parley.v1.ratings_pb2 import (
    WEIGHT_RULE_ACCURACY,
    WEIGHT_RULE_ELO,
    WEIGHT_RULE_UNSPECIFIED,
    AgentWeight,
    GetWeightsRequest,
)
from parley.v1.voting_pb2 import (
    VOTE_WEIGHTS_ACCURACY,
    VOTE_WEIGHTS_ELO,
    VOTE_WEIGHTS_RATINGS,
    VOTE_WEIGHTS_UNSPECIFIED,
    Ballot,
    Vote,
)

VOTE_WEIGHTS = Activity("vote-weights", "looking up what votes weigh", title="weights of the votes")
CHOICE_GROUPS = Activity("choice-groups", "comparing the choices", title="comparison of the choices")

_RULES: Final = {
    VOTE_WEIGHTS_RATINGS: WEIGHT_RULE_UNSPECIFIED,
    VOTE_WEIGHTS_ELO: WEIGHT_RULE_ELO,
    VOTE_WEIGHTS_ACCURACY: WEIGHT_RULE_ACCURACY,
}


async def fetch_vote_weights(
    debate: Debate, voters: Sequence[Agent], terms: VoteTerms
) -> Mapping[str, float]:
    """Return what each voter's ballot weighs: 1 each if votes are not weighted, or the ratings are away."""
    return {agent: each.weight for agent, each in (await fetch_records(debate, voters, terms)).items()}


async def fetch_records(
    debate: Debate, voters: Sequence[Agent], terms: VoteTerms
) -> Mapping[str, AgentWeight]:
    """Return what each voter's ballot weighs, with the record that it follows from; no record in the cases above."""
    equal = {each.id: AgentWeight(agent_id=each.id, weight=1.0) for each in voters}
    if terms.weighted_by == VOTE_WEIGHTS_UNSPECIFIED:
        return equal
    key = f"{terms.key}-weights"
    request = GetWeightsRequest(
        agent_ids=sorted(equal), domain=debate.spec.domain, rule=_RULES[terms.weighted_by]
    )
    work = VOTE_WEIGHTS.create_work(round_number=terms.round)
    found = await debate.call_service(
        key, work, request, lambda: debate.services.ratings.get_weights(request)
    )
    if isinstance(found, StepFailed):
        message = f"every vote weighs the same, since its weight could not be looked up: {found.message}"
        debate.warn(key, message)
        return equal
    return equal | {each.agent_id: each for each in found.weights}


async def group_similar_choices(
    debate: Debate, work: Sequence[Contribution], terms: VoteTerms, asked: Asked | None
) -> tuple[Group, ...]:
    """Return the proposals in groups of those that say the same; an agent of which that is not known stands alone.

    Convergence joins none but those of which every two are the same answer, whatever is unsure of others. Who is `asked`
    groups those of which it is unsure.
    """
    options = [each.agent for each in work]
    alone = group_options(options, (), ())
    if not terms.group_choices or len(options) < 2:
        return alone
    key = f"{terms.key}-groups"
    doing = CHOICE_GROUPS.create_work(round_number=terms.round)
    found = await group_positions(debate, key, doing, agent_positions(work), asked)
    if isinstance(found, StepFailed):
        debate.warn(key, f"every choice is counted alone, since they could not be compared: {found.message}")
        return alone
    apart = [(each.agent_id, each.other_agent_id) for each in found.contradictions]
    return group_options(options, [each.agent_ids for each in found.groups], apart)


VOTE = Activity(BALLOT, "votes", "Votes")
_BALLOT_PROMPT: Final = (
    "Vote for the proposal that answers the question best. Judge what is proposed and not how it is written; {own}."
    " Give the number of your choice, how sure you are from 0 to 1, and the reason in a sentence or two."
)
_MAY_BE_OWN: Final = "it may be your own"
_IS_NOT_OWN: Final = "your own is not among them"


_PROPOSALS: Final = re.compile(
    r"\b([Pp]roposals?)[ \t]+(?:no\.?[ \t]*|numbers?[ \t]+|#)?(\d{1,2}(?:(?:,[ \t]*|[ \t]+)(?:(?:and|or|&)[ \t]+)?\d{1,2})*)\b"
)
"""`proposal 2`, `Proposals 1, 2 and 3`."""


class _Ballot(BaseModel):
    """A vote, as it is asked for."""

    model_config = ConfigDict(extra="forbid")

    choice: Annotated[int, Field(ge=1, description="The number of the proposal.")]
    confidence: Annotated[float, Field(ge=0, le=1, description="How sure you are.")]
    reason: Annotated[str, Field(description="Why, in a sentence or two.")]


class _Poll(Struct, frozen=True):
    """One vote: who votes on what, and on which terms."""

    debate: Debate
    voters: Sequence[Agent]
    work: Sequence[Contribution]
    requirements: str
    terms: VoteTerms

    @property
    def options(self) -> list[str]:
        return [each.agent for each in self.work]

    def key(self, agent: str) -> str:
        """Return the key of an agent's ballot."""
        return f"{self.terms.key}/{agent}"

    def choices(self, voter: Agent) -> list[Contribution]:
        """Return what an agent may choose from."""
        return [each for each in self.work if self.terms.self_votes or each.agent != voter.id]


async def run_vote(
    debate: Debate,
    voters: Sequence[Agent],
    work: Sequence[Contribution],
    requirements: str = "",
    terms: VoteTerms = PANEL_TERMS,
    asked: Asked | None = None,
) -> Vote:
    """Let agents vote on each other's work, and return what that came to.

    It ends early, if the terms let it, once neither winner nor strength can change any more. An agent that fails
    abstains, and so does one that may choose nothing. What votes weigh and which choices are alike is looked up
    meanwhile; who is `asked` is asked which are, if that is unknown. Raise DebateFailedError if too few have voted. If those that failed for reasons that pass would be
    enough, they are waited for.
    """
    if not voters:
        raise DebateFailedError("QUORUM_LOST", "every agent is muted", phase=VOTE.name)
    poll = _Poll(debate, voters, work, requirements, terms)
    if terms.shared_family:
        message = (
            f"all voters share one model family ({terms.shared_family}): their votes are one voice, and their agreement"
            " shows a step less"
        )
        debate.warn(f"{terms.key}-voice", message)
    async with asyncio.TaskGroup() as tasks:
        weighing = tasks.create_task(fetch_vote_weights(debate, voters, terms))
        grouping = tasks.create_task(group_similar_choices(debate, work, terms, asked))
        steps = {
            each.id: partial(_ask_ballot_to_count, poll, each, weighing, grouping)
            for each in voters
            if poll.choices(each)
        }
        settled = await debate.run_until_enough(
            terms.key, steps, partial(_is_settled, poll, weighing, grouping)
        )
    weights, groups = weighing.result(), grouping.result()
    failed = {agent: each for agent, each in settled.items() if isinstance(each, StepFailed)}
    ballots = _sort_ballots(settled, weights)
    _check_quorum(poll, len(ballots), failed)
    return _create_vote(poll, settled, ballots, weights, groups)


def _is_settled(
    poll: _Poll,
    weighing: asyncio.Task[Mapping[str, float]],
    grouping: asyncio.Task[Sequence[voting.Group]],
    settled: Mapping[str, Ballot | StepFailed],
) -> bool:
    """Return whether those who have yet to vote are not waited for."""
    if not (poll.terms.early_end and weighing.done() and grouping.done()):
        return False
    weights = weighing.result()
    may_vote = [each.id for each in poll.voters if poll.choices(each)]
    return voting.is_decided(
        to_voting_ballots(_sort_ballots(settled, weights)),
        {agent: weights[agent] for agent in may_vote if agent not in settled},
        poll.options,
        len(poll.voters),
        poll.terms.rule,
        has_open_critiques=poll.terms.has_open_critiques,
        groups=grouping.result(),
        self_votes=poll.terms.self_votes,
    )


def _create_vote(
    poll: _Poll,
    settled: Mapping[str, Ballot | StepFailed],
    ballots: Sequence[Ballot],
    weights: Mapping[str, float],
    groups: Sequence[voting.Group],
) -> Vote:
    left_out = sorted(each.id for each in poll.voters if each.id not in settled and poll.choices(each))
    vote = Electorate([each.id for each in poll.voters], poll.options, poll.terms).create_result(
        ballots, groups, left_out
    )
    if poll.terms.records_terms:
        vote.left_out_weight = sum(weights[agent] for agent in left_out)
    return vote


def _check_quorum(poll: _Poll, cast: int, failed: Mapping[str, StepFailed]) -> None:
    enough = voting.quorum(len(poll.voters))
    if cast >= enough:
        return
    if not failed:
        message = f"{cast} of {len(poll.voters)} agents may vote, {enough} must"
        raise DebateFailedError("QUORUM_LOST", message, phase=VOTE.name)
    steps = {poll.key(agent): each for agent, each in failed.items()}
    raise answer_failure(poll.debate, steps, VOTE.name, needed=enough - cast)


async def _ask_ballot_to_count(
    poll: _Poll, voter: Agent, *known_from: asyncio.Task[Any]
) -> Ballot | StepFailed:
    """Return an agent's ballot once it can be counted: only then is it known whether the vote ends."""
    ballot = await _ask_ballot(poll, voter)
    await asyncio.wait(known_from)
    return ballot


async def _ask_ballot(poll: _Poll, voter: Agent) -> Ballot | StepFailed:
    debate, key, shown = poll.debate, poll.key(voter.id), poll.choices(voter)
    debate.random(key).shuffle(shown)  # none gains by standing first
    task_text = _BALLOT_PROMPT.format(own=_MAY_BE_OWN if poll.terms.self_votes else _IS_NOT_OWN)
    prompt = (
        *preamble(debate, voter, requirements=poll.requirements),
        *(quotation(f"Proposal {number}", each.text) for number, each in enumerate(shown, start=1)),
        user_part(task_text),
    )
    task = Task(VOTE.create_work(voter.id, poll.terms.round), prompt, is_answer=True, retry_once=True)
    letters = [debate.letter(each.agent) for each in shown]
    shape = AnswerShape("ballot", _Ballot, _create_schema(len(shown)), partial(_render_ballot, letters))
    cast = await debate.ask_structured(key, voter, task, shape)
    if isinstance(cast, StepFailed):
        return cast
    if cast.choice > len(shown):
        message = f"there is no proposal {cast.choice}"
        return StepFailed(work=task.work, reason="INVALID_STRUCTURED_ANSWER", message=message)
    chosen = shown[cast.choice - 1].agent
    reason = _name_proposals(letters, cast.reason)
    return Ballot(
        agent_id=voter.id, choice_agent_id=chosen, confidence=cast.confidence, reason=reason, weight=1
    )


def _sort_ballots(settled: Mapping[str, Ballot | StepFailed], weights: Mapping[str, float]) -> list[Ballot]:
    """Return the ballots with their weights, ordered by voter."""
    cast = sorted(
        (each for each in settled.values() if isinstance(each, Ballot)), key=lambda each: each.agent_id
    )
    for ballot in cast:
        ballot.weight = weights[ballot.agent_id]
    return cast


def _render_ballot(letters: Sequence[str], ballot: _Ballot) -> str:
    chosen = _name_proposals(letters, f"Proposal {ballot.choice}")
    return f"{chosen}, {ballot.confidence:.0%} sure: {_name_proposals(letters, ballot.reason)}"


def _name_proposals(letters: Sequence[str], text: str) -> str:
    """Return a text with the authors of proposals: their numbers mean something to the voter alone."""

    def name(number: re.Match[str]) -> str:
        place = int(number[0])
        return f"agent {letters[place - 1]}" if 1 <= place <= len(letters) else number[0]

    def name_all(found: re.Match[str]) -> str:
        return f"{found[1]} of {re.sub(r'[0-9]+', name, found[2])}"

    return _PROPOSALS.sub(name_all, text)


def _create_schema(count: int) -> str:
    schema = prompt_schema(_Ballot)
    schema["properties"]["choice"]["maximum"] = count
    return schema_text(schema)
