"""Proposals: each agent's own solution, built on its work of the round before from the second round on; and their quorum.

A first round with proposals from too few agents ends the debate, and a later one its rounds.
"""

from collections.abc import Iterable, Mapping
from functools import partial

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.positions import POSITION_INSTRUCTION
from parley.orchestrator.model.tasks import Activity, Task, user_part
from parley.orchestrator.model.voting import quorum
from parley.orchestrator.phases.failing import answer_failure, debate_failure
from parley.orchestrator.phases.past import PAST_FOR_AUTHORS
from parley.orchestrator.phases.patterns import PATTERNS_FOR_AUTHORS
from parley.orchestrator.phases.prompting import add_claims_to_cite, fit_to_question, length_limit, quotation
from parley.orchestrator.phases.protocols import with_manner
from parley.orchestrator.phases.situation import Situation, round_preamble
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Reply
from parley.v1.event_pb2 import StepFailed

PROPOSAL = Activity("proposal", "proposes", "Proposals")
SECTION = "propose"
CONCURRENCY = "proposals"


def propose_key(number: int, agent: str) -> str:
    """Return the key of an agent's proposal in a round."""
    return f"round/{number}/propose/{agent}"


async def propose(
    debate: Debate,
    agent: Agent,
    before: Contribution | None,
    situation: Situation,
    *,
    is_in_history: bool = False,
) -> Contribution | StepFailed:
    """Ask an agent for its proposal. `before` is its work of an earlier round, None if it has none.

    `is_in_history`: the history of the situation holds that work whole, so that it is not repeated.
    """
    spec, number = debate.spec, situation.number
    own = (quotation(_name_work(before).capitalize(), before.text),) if before and not is_in_history else ()
    asked = (
        _create_first_task(debate, agent, situation)
        if before is None
        else _create_later_task(debate, agent, before, situation)
    )
    prompt = (
        *round_preamble(debate, agent, situation),
        *own,
        *(situation.patterns if before is None else ()),
        user_part(f"{asked}{length_limit(spec.max_output_tokens)}"),
    )
    work = PROPOSAL.create_work(agent.id, number)
    annotate = partial(add_claims_to_cite, debate) if situation.cites else None
    task = Task(work, prompt, spec.max_output_tokens, concurrency=CONCURRENCY, annotate=annotate)
    reply = await debate.ask(propose_key(number, agent.id), agent, task)
    if isinstance(reply, StepFailed):
        return reply
    return create_proposal(agent.id, number, reply)


def create_proposal(agent: str, number: int, reply: Reply) -> Contribution:
    """Return an agent's proposal of a round as others read it."""
    claims = tuple(reply.claims_to_cite)
    return Contribution(agent, PROPOSAL.name, number, reply.text, reply.position, claims=claims)


def _create_first_task(debate: Debate, agent: Agent, situation: Situation) -> str:
    of_past = f"{PAST_FOR_AUTHORS} " if situation.past else ""
    of_patterns = f"{PATTERNS_FOR_AUTHORS} " if situation.patterns else ""
    task = with_manner(
        debate,
        SECTION,
        f"Write your proposal: your own answer to the question. {of_past}{of_patterns}{POSITION_INSTRUCTION}",
    )
    return f"{fit_to_question(debate.instructions(agent)[SECTION])}\n\n{task}"


def _create_later_task(debate: Debate, agent: Agent, before: Contribution, situation: Situation) -> str:
    """Return the task of a later round: the role's words, which ask for a first proposal, say what a proposal holds."""
    is_alone = len(debate.participants) == 1
    found = "mend what is wrong," if is_alone else "mend what was shown to be wrong,"
    of_past = f"{PAST_FOR_AUTHORS}\n\n" if situation.past else ""
    more = "and add what is missing." if is_alone else "and take over what you have read that is better."
    task = (
        f"Write your proposal for round {situation.number}. Develop {_name_work(before)}, which stands above; do not start anew."
        f" Keep what holds, {found} {more} The proposal must be complete in itself."
    )
    return (
        f"{with_manner(debate, SECTION, task)}\n\n"
        f"In round 1 you were asked for the following, and the proposal that you write now has to hold it too:\n"
        f"{fit_to_question(debate.instructions(agent)[SECTION])}\n\n{of_past}{POSITION_INSTRUCTION}"
    )


def _name_work(before: Contribution) -> str:
    return f"your {before.activity} of round {before.round}"


def check_quorum(
    debate: Debate, number: int, made: Mapping[str, Contribution | StepFailed | None]
) -> DebateFailedError | None:
    """Return why too few agents have a proposal, naming the first that has none; None: enough have one, or a limit ends the debate.

    Raises:
        DebateFailedError: too few have one in the first round. In any round, if those that failed for reasons that pass would be
            enough, they are waited for first; after that, the work of the rounds before stands.
    """
    failed = {agent: each for agent, each in made.items() if isinstance(each, StepFailed)}
    standing, enough = len(made) - len(failed), quorum(len(made))
    if debate.ending or (made and standing >= enough):
        return None
    phase = f"round {number} {PROPOSAL.name}"
    steps = {propose_key(number, agent): each for agent, each in failed.items()}
    if not steps:
        lost = DebateFailedError("QUORUM_LOST", "every agent is muted", phase=phase)
    elif number == 1:
        lost = debate_failure(steps, phase, needed=enough - standing)
    else:
        lost = answer_failure(debate, steps, phase, needed=enough - standing)
    if number == 1 or lost.steps_to_wait_for:
        raise lost
    return lost


def no_proposal_failure(debate: Debate, agents: Iterable[str]) -> DebateFailedError:
    """Return the failure of a debate that a limit ended before any of these agents had a first proposal."""
    return DebateFailedError(
        debate.ending.upper(),
        "the debate's limit was reached before any proposal stood",
        phase=f"round 1 {PROPOSAL.name}",
        steps=tuple(propose_key(1, each) for each in agents),
    )
