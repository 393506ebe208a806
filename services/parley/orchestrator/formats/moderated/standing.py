"""Where a debater stands when it is asked in a round: what it reads before its task, and how much it may write."""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct, field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution, texts_of
from parley.orchestrator.model.tasks import Prompt, user_part
from parley.orchestrator.model.tokens import upper_tokens
from parley.orchestrator.phases.history import (
    AgentHistory,
    available_tokens,
    count_prompt_tokens,
    split_to_fit,
)
from parley.orchestrator.phases.prompting import direction, guidance_of, quotation
from parley.orchestrator.phases.situation import (
    HISTORY_PRIORITY,
    common_preamble,
    describe_identity,
    history_prompt,
)
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Work

_TASK_TOKENS = 1000
"""Of an instruction and the form that is to be filled."""


class RoundBriefing(Struct, frozen=True):
    """A round as its debaters read of it.

    Attributes:
        number: The round, from 1; `total`: rounds at most.
        prompt: What the moderator put to the debaters: the question in the first round, then its summary and what is open.
        contributions: What was said in earlier rounds, oldest first.
        summaries: The moderator's of earlier rounds but the last, which is in `prompt`.
        past: What a debater reads of past debates.
        guidance: What a person wrote to the debaters.
        budget: Tokens that one debater may write in the round; 0: no limit.
        bound: Tokens of one contribution at most; 0: no limit.
    """

    number: int
    total: int
    prompt: str
    contributions: Sequence[Contribution] = ()
    summaries: Sequence[str] = ()
    past: Prompt = ()
    guidance: Sequence[str] = ()
    budget: int = 0
    bound: int = 0
    debaters: int = field(default=0)

    @property
    def argument_tokens(self) -> int:
        """What an argument may take: two thirds of the budget, since the rebuttal has to be paid from it too."""
        return _smallest_bound(self.budget * 2 // 3, self.bound)

    def rebuttal_tokens(self, spent_tokens: int) -> int:
        """Return what a rebuttal may take after an argument that took so much; negative if nothing is left."""
        left = self.budget - spent_tokens
        if self.budget and left < _MIN_TOKENS:
            return -1
        return _smallest_bound(left if self.budget else 0, self.bound)

    async def create_preamble(self, debate: Debate, agent: Agent) -> Prompt:
        """Return what a prompt of the round begins with: what stays the same first, then the history, which only grows."""
        return await in_thread_if_large(
            texts_of(self.contributions), partial(self._create_preamble, debate, agent)
        )

    def _create_preamble(self, debate: Debate, agent: Agent) -> Prompt:
        before = (
            *common_preamble(debate, agent, ""),
            user_part(describe_identity(debate, agent)),
            *self.past,
        )
        put = (
            user_part(f"This is round {self.number} of at most {self.total}."),
            direction("What the moderator puts to you", self.prompt),
            *guidance_of(self.guidance),
        )
        room = self._available_tokens(agent, (*before, *put))
        whole, gone = split_to_fit(self.contributions, room)
        history = AgentHistory(omitted=frozenset(each.name for each in gone), contributions=whole)
        summed = self._summary_prompts(gone)
        return (*before, *summed, *history_prompt(debate, agent, history), *put)

    def _available_tokens(self, agent: Agent, prompt: Prompt) -> int:
        """Return the tokens that are left for the history, next to what the round will bring."""
        longest = max((upper_tokens(each.text) for each in self.contributions), default=0)
        other_tokens = (
            count_prompt_tokens(prompt, agent.context_tokens) + _TASK_TOKENS + 2 * self.debaters * longest
        )
        return available_tokens(agent.context_tokens, _smallest_bound(self.budget, self.bound), other_tokens)

    def _summary_prompts(self, gone: Sequence[Contribution]) -> Prompt:
        """Return the moderator's summaries of the rounds of which something is left out."""
        last = max((each.round for each in gone), default=0)
        return tuple(
            quotation(f"Round {number}, as the moderator summed it up", text, HISTORY_PRIORITY)
            for number, text in enumerate(self.summaries[:last], start=1)
        )


_MIN_TOKENS = 32
"""Nothing can be said with fewer."""


def count_written_tokens(debate: Debate, work: Work) -> tuple[int, bool]:
    """Return the tokens that were written in a step that succeeded, and whether it was cut off."""
    reply = next(each.reply for each in debate.replies if each.work == work)
    return reply.usage.output_tokens, reply.truncated


def _smallest_bound(*bounds: int) -> int:
    """Return the smallest of some bounds of which 0 means none."""
    return min((each for each in bounds if each), default=0)
