"""Positions and agreement: what agents hold, how first drafts group by it, and whether a round ends in agreement.

The convergence service compares positions. An agent is asked about the pairs of which the service is unsure: it reads
all positions numbered, without names or letters. If its answer conflicts with what critics said of their own
agreement, it is asked again with the positions in the opposite order, and only what it says both times counts. What
stays unclear is never agreement.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Final, TypeGuard

from pydantic import BaseModel, ConfigDict, Field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.peers.services import truncate_text
from parley.orchestrator.phases.prompting import preamble, quotation
from parley.orchestrator.phases.schemas import prompt_schema, schema_text
from parley.v1.agent_pb2 import Agent
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONVERGED,
    CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
    CONVERGENCE_VERDICT_UNDETERMINED,
    AgentPosition,
    AssessRequest,
    AssessResponse,
    CriticVerdict,
    GroupPositionsRequest,
    GroupPositionsResponse,
    SettledPair,
    UnsurePair,
)
from parley.v1.debate_pb2 import (
    STOP_REASON_CONVERGED,
    STOP_REASON_STABLE_DISAGREEMENT,
    DraftGroup,
    DraftGroups,
)
from parley.v1.event_pb2 import DraftsGrouped, RoundAssessed, RoundsEnded, StepFailed


def agent_positions(work: Sequence[Contribution]) -> list[AgentPosition]:
    """Return what each agent stands for."""
    return [
        AgentPosition(agent_id=each.agent, position=each.position, text=truncate_text(each.text))
        for each in work
    ]


POSITION = Activity("position", "states its position", title="position")
_MAX_POSITION_TOKENS = 200
_POSITION_PROMPT = (
    "Your proposal was to end with a line that states your stand, and it has none. Write that line alone: `Position: ` followed"
    " by what you answer to the question, in one sentence that can be understood without your proposal."
)


async def state_positions(
    debate: Debate, number: int, work: Sequence[Contribution], key: str = "position"
) -> list[Contribution]:
    """Return work with its positions. Who is asked again and still states none stays without one.

    `key` names the question among those of a round in which two texts of an agent are asked for it.
    """
    return list(await asyncio.gather(*(_state_position(debate, number, each, key) for each in work)))


async def _state_position(debate: Debate, number: int, made: Contribution, key: str) -> Contribution:
    if made.position:
        return made
    agent = next(each for each in debate.participants if each.id == made.agent)
    prompt = (*preamble(debate, agent), quotation("Your proposal", made.text), user_part(_POSITION_PROMPT))
    task = Task(POSITION.create_work(agent.id, number), prompt, _MAX_POSITION_TOKENS)
    reply = await debate.ask(f"round/{number}/{key}/{agent.id}", agent, task)
    return made if isinstance(reply, StepFailed) else replace(made, position=reply.position)


GROUPING = Activity("grouping", "groups the positions", title="grouping of the positions")
_GROUPING_PROMPT = (
    "These are positions on the question, each from another agent. Group them by the answer they give: two belong together only"
    " if whoever follows one does what whoever follows the other does. Other words, other reasons and another language do not"
    " matter; another choice, number, order or condition does. Give each group as a list of numbers. A position that agrees with"
    " no other is a group of its own. Leave out a position of which you cannot tell what it answers."
)


class _Groups(BaseModel):
    """Groups of positions, as they are asked for."""

    model_config = ConfigDict(extra="forbid")

    groups: Annotated[
        list[list[int]], Field(description="The groups, each a list of the numbers of its positions.")
    ]


_GROUPS_SCHEMA = schema_text(prompt_schema(_Groups))


async def settle_agreement(
    debate: Debate,
    number: int,
    agent: Agent,
    work: Sequence[Contribution],
    unsure: Sequence[UnsurePair],
    critics: Sequence[CriticVerdict],
) -> list[SettledPair]:
    """Return which unsure pairs of agents are the same answer and which are not; those that stay unclear are left out."""
    key = f"round/{number}/grouping"
    shown = list(work)
    debate.random(key).shuffle(shown)
    pairs = [(each.agent_id, each.other_agent_id) for each in unsure]
    found = await _ask_groups(debate, key, number, agent, shown)
    settled = {pair: same for pair in pairs if (same := _are_together(found, pair)) is not None}
    if _has_conflict(settled, critics):
        again = await _ask_groups(debate, f"{key}/again", number, agent, shown[::-1])
        settled = {pair: same for pair, same in settled.items() if _are_together(again, pair) is same}
    return [
        SettledPair(agent_id=one, other_agent_id=other, same=same) for (one, other), same in settled.items()
    ]


async def _ask_groups(
    debate: Debate, key: str, number: int, agent: Agent, shown: Sequence[Contribution]
) -> dict[str, int]:
    """Return the group of each agent that the one asked put in exactly one."""
    prompt = (
        *preamble(debate, agent),
        *(
            quotation(f"Position {place}", each.position or each.text)
            for place, each in enumerate(shown, start=1)
        ),
        user_part(_GROUPING_PROMPT),
    )
    task = Task(GROUPING.create_work(agent.id, number), prompt)
    answer = await debate.ask_structured(
        key, agent, task, AnswerShape("grouping", _Groups, _GROUPS_SCHEMA, _render_groups)
    )
    if isinstance(answer, StepFailed):
        return {}
    places: dict[str, list[int]] = {}
    for group, members in enumerate(answer.groups):
        for place in set(members):
            if 1 <= place <= len(shown):
                places.setdefault(shown[place - 1].agent, []).append(group)
    return {each: groups[0] for each, groups in places.items() if len(groups) == 1}


def _are_together(groups: dict[str, int], pair: tuple[str, str]) -> bool | None:
    """Return whether two agents are in one group; None if one of them is in none."""
    one, other = (groups.get(agent) for agent in pair)
    return None if one is None or other is None else one == other


def _has_conflict(settled: dict[tuple[str, str], bool], critics: Sequence[CriticVerdict]) -> bool:
    """Return whether a critic said otherwise of its own position and the one that it read."""
    return any(
        settled.get(_sort_pair(each.critic_agent_id, each.target_agent_id), each.agrees) is not each.agrees
        for each in critics
    )


def _sort_pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _render_groups(answer: _Groups) -> str:
    return (
        "; ".join(" and ".join(map(str, each)) for each in answer.groups) or "No position could be grouped."
    )


FIRST_DRAFT_VOTE = Activity(
    "first-draft-vote", "comparing the first drafts", title="vote over the first drafts"
)


async def group_drafts(
    debate: Debate, drafts: Sequence[Contribution], asked: Callable[[], Agent] | None = None
) -> DraftGroups | None:
    """Record how the first drafts group by position, and whether that is certain; None if it is not known.

    Who `asked` returns reads all positions if the model is unsure of some; without it, no agent is asked.
    """
    if not drafts:
        return None
    key = FIRST_DRAFT_VOTE.name
    found = await _compare_drafts(debate, drafts, key)
    if isinstance(found, StepFailed):
        debate.warn(key, f"the first drafts could not be grouped: {found.message}")
        return None
    groups = _record_groups(debate, key, found)
    if asked is None or not found.unsure:
        return groups
    settled = await settle_agreement(debate, 1, asked(), drafts, found.unsure, ())
    again = await _compare_drafts(debate, drafts, f"{key}/settled", settled) if settled else None
    return (
        _record_groups(debate, f"{key}/settled", again)
        if isinstance(again, GroupPositionsResponse)
        else groups
    )


def _record_groups(debate: Debate, key: str, found: GroupPositionsResponse) -> DraftGroups:
    groups = _to_draft_groups(found)
    debate.record_event(f"{key}/groups", DraftsGrouped(drafts=groups))
    return groups


async def compute_draft_groups(
    debate: Debate, drafts: Sequence[Contribution], key: str
) -> DraftGroups | StepFailed:
    """Return how drafts group by position; the step is recorded under `key`."""
    found = await _compare_drafts(debate, drafts, key)
    return found if isinstance(found, StepFailed) else _to_draft_groups(found)


async def _compare_drafts(
    debate: Debate, drafts: Sequence[Contribution], key: str, settled: Sequence[SettledPair] = ()
) -> GroupPositionsResponse | StepFailed:
    request = GroupPositionsRequest(
        question=truncate_text(debate.spec.question), positions=agent_positions(drafts), settled=settled
    )
    work = FIRST_DRAFT_VOTE.create_work(round_number=1)
    return await debate.call_service(
        key, work, request, lambda: debate.services.convergence.group_positions(request)
    )


def _to_draft_groups(found: GroupPositionsResponse) -> DraftGroups:
    groups = [DraftGroup(agent_ids=each.agent_ids, position=each.position) for each in found.groups]
    return DraftGroups(groups=groups, majority=found.majority, certain=found.certain)


CONVERGENCE = Activity("convergence", "checking for agreement", title="check for agreement")
_STOP_REASONS: Final = {
    CONVERGENCE_VERDICT_CONVERGED: STOP_REASON_CONVERGED,
    CONVERGENCE_VERDICT_STABLE_DISAGREEMENT: STOP_REASON_STABLE_DISAGREEMENT,
}
"""Verdicts that end the rounds."""


def verdicts_of(critiques: Sequence[Contribution]) -> list[CriticVerdict]:
    """Return what critics said of whether they agree; who did not say it has no verdict."""
    return [
        CriticVerdict(critic_agent_id=made.agent, target_agent_id=made.target, agrees=made.critique.agrees)
        for made in critiques
        if made.critique is not None and made.critique.HasField("agrees")
    ]


async def find_end_by_agreement(
    debate: Debate,
    number: int,
    work: Sequence[Contribution],
    before: Sequence[Contribution],
    threshold: int,
    critiques: Sequence[Contribution] = (),
    asked: Agent | None = None,
) -> RoundsEnded | None:
    """Return why the rounds end, since the agents agree or no longer move; None if they go on. The threshold is in percent.

    If it is not known, the rounds go on, and the debate says so.
    """
    assessed = await assess_agreement(debate, number, work, before, threshold, critiques, asked)
    return None if assessed is None else record_finding(debate, number, assessed, threshold)


async def assess_agreement(
    debate: Debate,
    number: int,
    work: Sequence[Contribution],
    before: Sequence[Contribution],
    threshold: int,
    critiques: Sequence[Contribution] = (),
    asked: Agent | None = None,
) -> AssessResponse | None:
    """Return what is said of a round's agreement; None, with a warning, if it is not known.

    What the critics of the round say of their agreement counts as much as the positions. `asked` is asked about the
    positions on which agreement depends and of which the service is unsure; without one, no agent is asked.
    """
    key = assessment_key(number)
    if len(work) < 2:
        _warn_unknown(debate, key, number, "fewer than two agents have a proposal")
        return None
    request = AssessRequest(
        question=truncate_text(debate.spec.question),
        positions=agent_positions(work),
        previous=agent_positions(before),
        critics=verdicts_of(critiques),
        agreement_threshold_percent=threshold,
    )
    assessed = await _assess(debate, key, number, request)
    if asked is not None and _is_unsure(assessed):
        settled = await settle_agreement(debate, number, asked, work, assessed.unsure, request.critics)
        if settled:
            request.settled.extend(settled)
            assessed = await _assess(debate, f"{key}/settled", number, request)
    if isinstance(assessed, StepFailed):
        _warn_unknown(debate, key, number, assessed.message)
        return None
    return assessed


def record_finding(
    debate: Debate, number: int, assessed: AssessResponse, threshold: int
) -> RoundsEnded | None:
    """Record what an assessment says of a round, and return why the rounds end, if they do."""
    reason, finding = _STOP_REASONS.get(assessed.verdict), _describe(assessed, threshold)
    found = RoundAssessed(round=number, ends_rounds=reason is not None, finding=finding)
    debate.record_event(f"{assessment_key(number)}/finding", found)
    return None if reason is None else RoundsEnded(reason=reason, explanation=finding)


def assessment_key(number: int) -> str:
    """Return the key of the step that assesses a round."""
    return f"round/{number}/convergence"


async def _assess(
    debate: Debate, key: str, number: int, request: AssessRequest
) -> AssessResponse | StepFailed:
    work, asked = CONVERGENCE.create_work(round_number=number), AssessRequest()
    asked.CopyFrom(request)
    return await debate.call_service(key, work, asked, lambda: debate.services.convergence.assess(asked))


def _is_unsure(assessed: AssessResponse | StepFailed) -> TypeGuard[AssessResponse]:
    return isinstance(assessed, AssessResponse) and assessed.verdict == CONVERGENCE_VERDICT_UNDETERMINED


def _describe(assessed: AssessResponse, threshold: int) -> str:
    percent = f"{assessed.agreement_percent:.0f} %, threshold {threshold} %{_describe_critics(assessed)}"
    if assessed.verdict == CONVERGENCE_VERDICT_CONVERGED:
        return f"the agents agree ({percent})"
    if assessed.verdict == CONVERGENCE_VERDICT_STABLE_DISAGREEMENT:
        return f"the agents disagree and no longer move (agreement {percent})"
    if assessed.verdict == CONVERGENCE_VERDICT_UNDETERMINED:
        return f"whether the agents agree cannot be told ({percent})"
    return f"the agents do not agree yet ({percent})"


def _describe_critics(assessed: AssessResponse) -> str:
    if not assessed.HasField("critic_agreement_percent"):
        return ""
    return f"; of the critics {assessed.critic_agreement_percent:.0f} % agree"


def _warn_unknown(debate: Debate, key: str, number: int, why: str) -> None:
    debate.warn(key, f"agreement after round {number} could not be told, and the rounds go on: {why}")
