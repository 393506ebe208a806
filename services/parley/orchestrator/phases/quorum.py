"""The quorum of a round: with proposals from too few agents, it is no round."""

from collections.abc import Iterable, Mapping

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.voting import quorum
from parley.orchestrator.phases.failing import failed_for_want_of
from parley.orchestrator.phases.propose import PROPOSAL, propose_key
from parley.v1.event_pb2 import StepFailed

__all__ = ["hold_quorum", "no_proposal_in_time"]


def hold_quorum(debate: Debate, number: int, made: Mapping[str, Contribution | StepFailed | None]) -> None:
    """End the debate where too few agents have a proposal, naming the first that has none.

    Where those that failed for reasons that pass would be enough, they are waited for. A debate that a limit ends
    goes on with what it has.
    """
    failed = {agent: each for agent, each in made.items() if isinstance(each, StepFailed)}
    standing, enough = len(made) - len(failed), quorum(len(made))
    if debate.ending or (made and standing >= enough):
        return
    phase = f"round {number} {PROPOSAL.name}"
    if not failed:
        raise DebateFailedError("QUORUM_LOST", "every agent is muted", phase=phase)
    steps = {propose_key(number, agent): each for agent, each in failed.items()}
    raise failed_for_want_of(steps, phase, needed=enough - standing)


def no_proposal_in_time(debate: Debate, agents: Iterable[str]) -> DebateFailedError:
    """Return the failure of a debate that a limit ended before any of these agents had a first proposal."""
    return DebateFailedError(
        debate.ending.upper(),
        "the debate's limit was reached before any proposal stood",
        phase=f"round 1 {PROPOSAL.name}",
        steps=tuple(propose_key(1, each) for each in agents),
    )
