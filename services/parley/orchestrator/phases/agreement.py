"""Positions and agreement: what agents hold, how first drafts group by it, and whether a round ends in agreement.

The convergence service compares positions, and an agent is asked about those of which the service is unsure. What stays
unclear is never agreement.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Activity, Task, user_part
from parley.orchestrator.peers.services import truncate_text
from parley.orchestrator.phases.grouping import Asked, ask_groups
from parley.orchestrator.phases.prompting import preamble, quotation
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
    Work,
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


FIRST_DRAFT_VOTE = Activity(
    "first-draft-vote", "comparing the first drafts", title="vote over the first drafts"
)
DRAFT_COMPARISON = Activity("draft-comparison", "comparing the drafts", title="comparison of the drafts")


async def group_drafts(
    debate: Debate,
    drafts: Sequence[Contribution],
    asked: Asked | None,
    known: DraftGroups | None = None,
    *,
    number: int = 1,
) -> DraftGroups | None:
    """Return how the drafts of a round group by position, and whether that is certain; None if it is not known.

    Who is `asked` groups the positions of which the service is unsure; without it, no agent is asked. If it is `known` of all
    these drafts, nothing is computed. The groups of the first drafts are recorded: they are the vote that a debate has to beat.
    """
    key = FIRST_DRAFT_VOTE.name if number == 1 else f"round/{number}/{DRAFT_COMPARISON.name}"
    groups: DraftGroups | StepFailed | None = known
    if known is None or {each.agent for each in drafts} != {
        a for each in known.groups for a in each.agent_ids
    }:
        groups = await compute_draft_groups(debate, drafts, key, asked, number) if drafts else None
    if isinstance(groups, StepFailed):
        which = "first drafts" if number == 1 else f"drafts of round {number}"
        debate.warn(key, f"the {which} could not be grouped: {groups.message}")
        return None
    if groups is not None and number == 1:
        debate.record_event(f"{key}/groups", DraftsGrouped(drafts=groups))
    return groups


async def compute_draft_groups(
    debate: Debate,
    drafts: Sequence[Contribution],
    key: str,
    asked: Asked | None,
    number: int = 1,
) -> DraftGroups | StepFailed:
    """Return how the drafts of a round group by position, as `group_positions` does."""
    activity = FIRST_DRAFT_VOTE if number == 1 else DRAFT_COMPARISON
    work = activity.create_work(round_number=number)
    found = await group_positions(debate, key, work, agent_positions(drafts), asked)
    if isinstance(found, StepFailed):
        return found
    groups = [DraftGroup(agent_ids=each.agent_ids, position=each.position) for each in found.groups]
    return DraftGroups(groups=groups, majority=found.majority, certain=found.certain)


async def group_positions(
    debate: Debate, key: str, work: Work, positions: Sequence[AgentPosition], asked: Asked | None = None
) -> GroupPositionsResponse | StepFailed:
    """Return how agents group by position; the steps are recorded under `key` and below it.

    If the service is unsure of some positions, who is `asked` groups these. Nobody is asked about equal ones.
    """
    found = await _call_grouping(debate, key, work, positions, ())
    if isinstance(found, StepFailed) or asked is None:
        return found
    open_positions = _unsure_positions(positions, found.unsure)
    settled = await ask_groups(debate, f"{key}/grouping", work.round, asked, open_positions)
    return await _call_grouping(debate, f"{key}/settled", work, positions, settled) if settled else found


async def _call_grouping(
    debate: Debate,
    key: str,
    work: Work,
    positions: Sequence[AgentPosition],
    settled: Sequence[SettledPair],
) -> GroupPositionsResponse | StepFailed:
    request = GroupPositionsRequest(
        question=truncate_text(debate.spec.question), positions=positions, settled=settled
    )
    return await debate.call_service(
        key, work, request, lambda: debate.services.convergence.group_positions(request)
    )


def _unsure_positions(positions: Sequence[AgentPosition], unsure: Sequence[UnsurePair]) -> list[str]:
    """Return the positions of pairs that are unsure; a pair of which an agent states none stays so."""
    stated = {each.agent_id: each.position for each in positions}
    pairs = [(stated[each.agent_id], stated[each.other_agent_id]) for each in unsure]
    return [each for pair in pairs if all(pair) for each in pair]


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
    critiques: Sequence[Contribution],
    asked: Asked | None,
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
    critiques: Sequence[Contribution],
    asked: Asked | None = None,
    *,
    asks_all: bool = False,
) -> AssessResponse | None:
    """Return what is said of a round's agreement; None, with a warning, if it is not known.

    What the critics of the round say of their agreement counts as much as the positions. Who is `asked` groups the positions
    of which the service is unsure if the verdict depends on them, or in any case (`asks_all`); without one, no agent is asked.
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
    if asked is not None and isinstance(assessed, AssessResponse) and (asks_all or _is_unsure(assessed)):
        open_positions = _open_positions(request, assessed)
        settled = await ask_groups(debate, f"round/{number}/grouping", number, asked, open_positions)
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


def _is_unsure(assessed: AssessResponse) -> bool:
    return assessed.verdict == CONVERGENCE_VERDICT_UNDETERMINED


def _open_positions(request: AssessRequest, assessed: AssessResponse) -> list[str]:
    """Return the positions of which it is unknown whether they are the same, and the earlier ones that may have been kept."""
    before = {each.agent_id: each.position for each in request.previous}
    now = {each.agent_id: each.position for each in request.positions}
    unknown = [each.agent_id for each in assessed.stability if not each.HasField("kept")]
    moves = [(before[each], now[each]) for each in unknown]
    return [
        *_unsure_positions(request.positions, assessed.unsure),
        *(each for move in moves if all(move) for each in move),
    ]


def _describe(assessed: AssessResponse, threshold: int) -> str:
    percent = f"{assessed.agreement_percent:.0f} %, threshold {threshold} %{_describe_critics(assessed)}"
    if assessed.verdict == CONVERGENCE_VERDICT_CONVERGED:
        return f"the agents agree ({percent})"
    if assessed.verdict == CONVERGENCE_VERDICT_STABLE_DISAGREEMENT:
        return f"the agents disagree and no longer move (agreement {percent})"
    if assessed.verdict == CONVERGENCE_VERDICT_UNDETERMINED:
        return f"whether the agents agree, or still move, cannot be told ({percent})"
    return f"the agents do not agree yet ({percent})"


def _describe_critics(assessed: AssessResponse) -> str:
    if not assessed.HasField("critic_agreement_percent"):
        return ""
    return f"; of the critics {assessed.critic_agreement_percent:.0f} % agree"


def _warn_unknown(debate: Debate, key: str, number: int, why: str) -> None:
    debate.warn(key, f"agreement after round {number} could not be told, and ends no rounds: {why}")
