"""Where an agent stands when it is asked: its letter, the round, what is known so far."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Prompt, user_part
from parley.orchestrator.phases.history import AgentHistory, render_history
from parley.orchestrator.phases.prompting import guidance_of, preamble, quotation
from parley.v1.agent_pb2 import Agent
from parley.v1.gateway_pb2 import PromptPart

DOCUMENTS_PRIORITY: Final = 3
HISTORY_PRIORITY: Final = 2
"""The history fits next to half a context of documents, so they are left out before it."""

_LETTERS = "Such letters name agents and never options of the question"


@dataclass(frozen=True, slots=True)
class Situation:
    """Where the agents stand in a round.

    Attributes:
        number: The round, from 1; `total`: rounds at most.
        history: What the agent reads of the rounds before, as `history_prompt` makes it.
        requirements: Those that were drawn up, as text; empty for none.
        past: What the agent reads of earlier decisions, as `past_prompt` makes it.
        patterns: What critics, and who writes a first draft, read of issues of earlier debates, as `patterns_prompt` makes it.
        guidance: What a person asked of the agents.
        asks_readiness: Whether those who revise say whether they are ready for the vote.
        cites: Whether claims are noted that need a citation.
        preambles: What prompts begin with that were made of it.
    """

    number: int
    total: int
    history: Prompt = ()
    requirements: str = ""
    past: Prompt = ()
    patterns: Prompt = ()
    guidance: Sequence[str] = ()
    asks_readiness: bool = False
    cites: bool = False
    preambles: dict[Hashable, Prompt] = field(default_factory=dict, init=False, repr=False, compare=False)


def round_preamble(debate: Debate, agent: Agent, situation: Situation) -> Prompt:
    """Return what a prompt in a round begins with.

    What is the same in later prompts of the agent stands first, then the history, which only grows, then the round.
    """
    known, key = situation.preambles, (agent.id, len(debate.participants), debate.documents, debate.briefing)
    if key not in known:  # it is long, and the same in all prompts of the agent in a round
        known[key] = _create_preamble(debate, agent, situation)
    return known[key]


def _create_preamble(debate: Debate, agent: Agent, situation: Situation) -> Prompt:
    return (
        *common_preamble(debate, agent, situation.requirements),
        user_part(describe_identity(debate, agent)),
        *situation.past,
        *situation.history,
        user_part(_describe_round(situation)),
        *guidance_of(situation.guidance),
    )


def _describe_round(situation: Situation) -> str:
    """Return which round it is; before the last one it is open whether there will be more."""
    number, total = situation.number, situation.total
    return f"This is round {number} of {'at most ' if number < total else ''}{total}."


def common_preamble(debate: Debate, agent: Agent, requirements: str) -> Prompt:
    """Return what all prompts of an agent have in common."""
    return preamble(debate, agent, requirements=requirements, documents_give=DOCUMENTS_PRIORITY)


def describe_identity(debate: Debate, agent: Agent) -> str:
    """Return who an agent is among its peers."""
    letter, count = debate.letter(agent.id), len(debate.participants)
    if count == 1:
        return "You work on this question alone: there are no other agents."
    return f"You are agent {letter} of {count} agents. {_LETTERS}{_call(letter)}."


def describe_agents(debate: Debate, *, are_named: bool = True) -> str:
    """Return who the agents are to one who judges them; `are_named`: whether it names them in what it writes."""
    count = len(debate.participants)
    if count == 1:
        return "Agent A worked on this question alone. Nobody has examined its work: look yourself for what is wrong or missing in it."
    last = debate.letter(debate.participants[-1].id)
    return f"{count} agents took part in the debate, agents A to {last}. {_LETTERS}{_call('A') if are_named else ''}."


def _call(letter: str) -> str:
    return f': write "agent {letter}", not "{letter}"'


def call_by_letters(letters: Sequence[str]) -> str:
    """Return what agents are called among themselves, such as `agents A, B`; these must be some."""
    return f"agent{'s' if len(letters) > 1 else ''} {', '.join(letters)}"


def quote_work(debate: Debate, work: Sequence[Contribution], title: str) -> Prompt:
    """Return the work of agents, each in a quotation of its own that says whose it is, and of which round."""
    return tuple(
        quotation(
            f"{title} of agent {debate.letter(each.agent)}, its {each.activity} of round {each.round}",
            each.text,
        )
        for each in work
    )


def history_prompt(debate: Debate, agent: Agent, history: AgentHistory, whose: str = "The debate") -> Prompt:
    """Return what an agent reads of `history`, its own work marked as such; that of one who works alone is no debate."""
    parts: list[PromptPart] = []
    if len(debate.participants) == 1:
        whose = "The work of agent A" if agent is debate.judge else "Your work"
    if history.summary:
        title = f"{whose} at first, as you summarized it"
        parts.append(quotation(title, history.summary, HISTORY_PRIORITY))
    elif history.omitted:
        count = len(history.omitted)
        which = (
            "1 earlier contribution is left out here, since it does"
            if count == 1
            else f"{count} earlier contributions are left out here, since they do"
        )
        parts.append(user_part(f"{which} not fit."))
    if history.contributions:
        title = f"{whose} {'since then' if history.omitted else 'so far'}"
        text = render_history(debate.letter, history.contributions, agent.id)
        parts.append(quotation(title, text, HISTORY_PRIORITY))
    return tuple(parts)
