"""Where a debater stands when it is asked in a round: what it reads before its task, and how much it may write."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution, texts_of
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Prompt, user_part
from parley.orchestrator.model.tokens import upper_tokens
from parley.orchestrator.phases.history import Told, give_way, room_for, tokens_of_prompt
from parley.orchestrator.phases.prompting import guidance_of, quotation
from parley.orchestrator.phases.situation import HISTORY_GIVES, history, identity, start
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.debate_pb2 import Work

__all__ = ["Standing", "spent"]

_TASK_TOKENS = 1000
"""Of an instruction and the form that is to be filled."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A round as its debaters read of it.

    Attributes:
        number: The round, from 1; `total`: rounds at most.
        put: What the moderator put to the debaters: the question in the first round, then its summary and what is open.
        held: What was said in earlier rounds, oldest first.
        summaries: The moderator's of earlier rounds but the last, which is in `put`.
        past: What is recalled of past debates.
        guidance: What a person told the debaters.
        budget: Tokens that one debater may write in the round; 0: no limit.
        bound: Tokens of one contribution at most; 0: no limit.
    """

    number: int
    total: int
    put: str
    held: Sequence[Contribution] = ()
    summaries: Sequence[str] = ()
    past: str = ""
    guidance: Sequence[str] = ()
    budget: int = 0
    bound: int = 0
    debaters: int = field(default=0)

    @property
    def argument_tokens(self) -> int:
        """What an argument may take: two thirds of the budget, since the rebuttal has to be paid from it too."""
        return _least(self.budget * 2 // 3, self.bound)

    def rebuttal_tokens(self, spent_tokens: int) -> int:
        """Return what a rebuttal may take after an argument that took so much; negative if nothing is left."""
        left = self.budget - spent_tokens
        if self.budget and left < _LEAST_TOKENS:
            return -1
        return _least(left if self.budget else 0, self.bound)

    async def opening(self, debate: Debate, agent: AgentSpec) -> Prompt:
        """Return what a prompt of the round begins with: what stays the same first, then the history, which only grows."""
        return await in_thread_if_large(texts_of(self.held), partial(self._opening, debate, agent))

    def _opening(self, debate: Debate, agent: AgentSpec) -> Prompt:
        recalled = (
            [quotation("Past debates on like questions", self.past, HISTORY_GIVES)] if self.past else []
        )
        before = (*start(debate, agent, ""), user_part(identity(debate, agent)), *recalled)
        put = (
            user_part(f"This is round {self.number} of at most {self.total}."),
            quotation("The moderator", self.put, 0),
            *guidance_of(self.guidance),
        )
        room = self._room(agent, (*before, *put))
        whole, gone = give_way(self.held, room)
        told = Told(gone=frozenset(each.name for each in gone), whole=whole)
        summed = self._summed(gone)
        return (*before, *summed, *history(debate, agent, told), *put)

    def _room(self, agent: AgentSpec, told: Prompt) -> int:
        """Return the tokens that are left for the history, next to what the round will bring."""
        longest = max((upper_tokens(each.text) for each in self.held), default=0)
        beside = tokens_of_prompt(told, agent.context_tokens) + _TASK_TOKENS + 2 * self.debaters * longest
        return room_for(agent.context_tokens, _least(self.budget, self.bound), beside)

    def _summed(self, gone: Sequence[Contribution]) -> Prompt:
        """Return the moderator's summaries of the rounds of which something is left out."""
        last = max((each.round for each in gone), default=0)
        return tuple(
            quotation(f"Round {number}, as the moderator summed it up", text, HISTORY_GIVES)
            for number, text in enumerate(self.summaries[:last], start=1)
        )


_LEAST_TOKENS = 32
"""Nothing can be said with fewer."""


def spent(debate: Debate, work: Work) -> tuple[int, bool]:
    """Return the tokens that were written in a step that succeeded, and whether it was cut off."""
    reply = next(each.reply for each in debate.replies if each.work == work)
    return reply.usage.output_tokens, reply.truncated


def _least(*bounds: int) -> int:
    """Return the smallest of some bounds of which 0 means none."""
    return min((each for each in bounds if each), default=0)
