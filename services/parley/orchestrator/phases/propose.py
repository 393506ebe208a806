"""Proposals: each agent's own solution; from the second round on it is built on the agent's work of the round before."""

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.positions import POSITION_INSTRUCTION
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity, Task, user_part
from parley.orchestrator.phases.cite import note_claims
from parley.orchestrator.phases.prompting import in_words, quotation
from parley.orchestrator.phases.situation import Situation, opening
from parley.v1.event_pb2 import StepFailed

__all__ = ["CONCURRENCY", "PROPOSAL", "SECTION", "propose", "propose_key"]

PROPOSAL = Activity("proposal", "proposes", "Proposals")
SECTION = "propose"
CONCURRENCY = "proposals"


def propose_key(number: int, agent: str) -> str:
    """Return the key of an agent's proposal in a round."""
    return f"round/{number}/propose/{agent}"


async def propose(
    debate: Debate,
    agent: AgentSpec,
    before: Contribution | None,
    situation: Situation,
    *,
    is_told: bool = False,
) -> Contribution | StepFailed:
    """Ask an agent for its proposal. `before` is its work of an earlier round, None where it has none.

    `is_told`: the history of the situation holds that work whole, so that it is not told twice.
    """
    spec, number = debate.spec, situation.number
    own = (quotation(_of_before(before).capitalize(), before.text),) if before and not is_told else ()
    asked = _first(agent, situation) if before is None else _further(debate, agent, before, situation)
    prompt = (
        *opening(debate, agent, situation),
        *own,
        user_part(f"{asked}{in_words(spec.max_output_tokens)}"),
    )
    work = PROPOSAL.create_work(agent.id, number)
    annotate = note_claims if situation.cites else None
    task = Task(work, prompt, spec.max_output_tokens, concurrency=CONCURRENCY, annotate=annotate)
    reply = await debate.ask(propose_key(number, agent.id), agent, task)
    if isinstance(reply, StepFailed):
        return reply
    return Contribution(
        agent.id, PROPOSAL.name, number, reply.text, reply.position, claims=tuple(reply.claims_to_cite)
    )


def _first(agent: AgentSpec, situation: Situation) -> str:
    task = situation.told(SECTION, f"Propose your solution. {POSITION_INSTRUCTION}")
    return f"{agent.instructions[SECTION]}\n\n{task}"


def _further(debate: Debate, agent: AgentSpec, before: Contribution, situation: Situation) -> str:
    """Return the task of a later round: the role's words, which ask for a first proposal, say what a proposal holds."""
    is_alone = len(debate.participants) == 1
    found = "mend what is wrong," if is_alone else "mend what the debate has shown to be wrong,"
    more = "and add what is missing." if is_alone else "and take over what others do better."
    task = (
        f"Write your proposal for round {situation.number}. Develop {_of_before(before)}, which stands above; do not start anew."
        f" Keep what holds, {found} {more} The proposal must be complete in itself."
    )
    return (
        f"{situation.told(SECTION, task)}\n\n"
        f"In round 1 you were asked for the following, and the proposal that you write now has to hold it too:\n"
        f"{agent.instructions[SECTION]}\n\n{POSITION_INSTRUCTION}"
    )


def _of_before(before: Contribution) -> str:
    return f"your {before.activity} of round {before.round}"
