"""When a debate ends because no agent can answer: whom they all ask has refused, and nothing was answered before."""

from collections.abc import Collection, Mapping

from parley.orchestrator.engine.budget import is_refusal
from parley.orchestrator.log.replay import RecordedState
from parley.orchestrator.model.errors import DebateFailedError
from parley.runtime.work_words import phase_text
from parley.v1.agent_pb2 import Agent
from parley.v1.event_pb2 import StepFailed


def find_refused_steps(recorded: RecordedState) -> Mapping[str, str]:
    """Return the steps that were refused, with the ids of their agents, without those that are asked again.

    There are none if anything was answered: a refusal may then pass.
    """
    if recorded.concluded is not None or recorded.list_replies():
        return {}
    return {
        key: outcome.work.agent_id
        for key, (_, outcome) in recorded.outcomes.items()
        if isinstance(outcome, StepFailed) and is_refusal(outcome.reason) and key not in recorded.retried
    }


def check_not_all_refused(
    recorded: RecordedState, asked: Agent, failed: StepFailed, agents: Collection[Agent]
) -> None:
    """Raise DebateFailedError if no further call can succeed: this failure is a refusal, and every one of `agents` has routes that refused."""
    if not is_refusal(failed.reason):
        return
    refused = find_refused_steps(recorded)
    routes = [each.routes for each in (asked, *agents) if each.id in refused.values()]
    if routes and all(each.routes in routes for each in agents):
        work = failed.work
        phase = phase_text(work.title or work.activity, work.round)
        raise DebateFailedError(failed.reason, failed.message, agent=work.agent_id, phase=phase)
