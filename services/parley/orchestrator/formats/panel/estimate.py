"""What a panel is expected to take, by its settings: the calls of its formula, and what comes on top."""

from collections.abc import Iterator

from parley.orchestrator.model.expected_calls import (
    INSTRUCTION_TOKENS,
    LONG_TEXT,
    SHORT_TEXT,
    ExpectedCalls,
    create_estimate,
)
from parley.orchestrator.model.spec import agents_of
from parley.orchestrator.model.tokens import CHARACTERS_A_TOKEN, likely_tokens
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateEstimate, DebateSpec
from parley.v1.event_pb2 import DebateCreated
from parley.v1.panel_pb2 import (
    EFFORT_QUICK,
    SYNTHESIS_METHOD_JUDGE,
    SYNTHESIS_METHOD_MERGE,
    SYNTHESIS_METHOD_VOTING,
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_FIXED,
    TERMINATION_RULE_QUALITY,
    TERMINATION_RULE_UNDISPUTED,
)

_ASKS = (TERMINATION_RULE_CONVERGENCE, TERMINATION_RULE_UNDISPUTED)
"""The rules by which an agent may be asked, once or twice a round, which positions are the same."""


def estimate_panel(created: DebateCreated, found_characters: int = 0) -> DebateEstimate:
    """Return what a panel is expected to take at least and at most, if research may find so many characters for it."""
    rule, rounds = created.spec.panel.termination.rule, created.spec.panel.rounds
    is_alone = len(created.spec.agents) == 1
    at_least = rounds if created.demonstration or rule == TERMINATION_RULE_FIXED else 1
    at_most = 1 if is_alone and rule == TERMINATION_RULE_UNDISPUTED else rounds
    fewest = _Course(created, at_least, SHORT_TEXT, is_long=False)
    most = _Course(created, at_most, LONG_TEXT, is_long=True, found=found_characters // CHARACTERS_A_TOKEN)
    return create_estimate([*fewest.list_calls()], [*most.list_calls()])


class _Course:
    """How a panel may go: so many rounds, with texts of so many tokens, and so many that research has found."""

    def __init__(
        self, created: DebateCreated, rounds: int, text: int, *, is_long: bool, found: int = 0
    ) -> None:
        self._created = created
        self._spec: DebateSpec = created.spec
        self._settings = created.spec.panel
        self._agents = agents_of(created.spec)
        self._judge = created.spec.judge.agent
        self._rounds = rounds
        self._text = min(text, created.spec.max_output_tokens or text)
        self._is_long = is_long
        documents = sum(likely_tokens(each.text) for each in created.spec.context)
        self._start = INSTRUCTION_TOKENS + likely_tokens(created.spec.question) + documents + found

    def list_calls(self) -> Iterator[ExpectedCalls]:
        """Yield all calls, in about the order in which they are made."""
        text = self._text
        if self._spec.HasField("clarifications"):
            times = self._spec.clarifications.max_times if self._is_long else 1
            yield from (self._call(each, times, 0) for each in self._agents)
        if not self._created.demonstration:
            yield self._call(self._judge, 1, 0)  # the requirements
        for number in range(1, self._rounds + 1):
            yield from self._list_calls_of_round(number)
        if self._settings.termination.rule != TERMINATION_RULE_FIXED:
            yield from self._list_checks()
        everything = self._rounds * self._texts_of_round() * text
        yield from self._list_answer_calls(everything)
        if self._spec.analysis:
            yield self._call(self._judge, 1, everything)

    def _list_calls_of_round(self, number: int) -> Iterator[ExpectedCalls]:
        others, text = len(self._agents) - 1, self._text
        is_whole = self._settings.include_full_history
        line = self._texts_of_round() if is_whole else others + 2
        history = (number - 1) * line * text
        is_carried = self._settings.carry_forward and number > 1
        for agent in self._agents:
            if not is_carried:
                yield self._call(agent, 1, history)
            if self._settings.effort != EFFORT_QUICK:
                yield self._call(agent, others, history + text)
                yield self._call(agent, 1, history + (1 + others) * text)

    def _texts_of_round(self) -> int:
        count = len(self._agents)
        return count if self._settings.effort == EFFORT_QUICK else count * (count + 1)

    def _list_checks(self) -> Iterator[ExpectedCalls]:
        """Yield what is asked after each round but the last, to see whether another is needed."""
        if self._settings.rounds == 1 or self._created.demonstration:
            return
        rounds = self._rounds - 1 if self._is_long else 1
        works = len(self._agents) * self._text
        if self._settings.termination.rule == TERMINATION_RULE_QUALITY:
            yield self._call(self._judge, rounds, works)
        elif self._is_long and len(self._agents) > 1:
            yield self._call(self._judge, 2 * rounds, works)

    def _list_answer_calls(self, everything: int) -> Iterator[ExpectedCalls]:
        method, works = self._settings.synthesis_method, len(self._agents) * self._text
        if self._created.demonstration:
            method = SYNTHESIS_METHOD_JUDGE
        if method != SYNTHESIS_METHOD_VOTING:
            yield self._call(self._judge, 1, everything)
        if method in (SYNTHESIS_METHOD_VOTING, SYNTHESIS_METHOD_MERGE):
            yield from (self._call(each, 1, works) for each in self._agents)

    def _call(self, agent: Agent, count: int, quoted: int) -> ExpectedCalls:
        """Return calls that quote so many tokens; a prompt is never longer than the context, as far as that is known."""
        read = self._start + quoted
        return ExpectedCalls(agent, count, min(read, agent.context_tokens or read), self._text)
