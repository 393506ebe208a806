"""What an answer can rest on, under the names that a prompt gives it: the question (Q), contributions (C1, …), sources (S1, …)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.open_issues import answers_of
from parley.orchestrator.model.sources import count_citations
from parley.orchestrator.model.tasks import Prompt
from parley.orchestrator.phases.agreement import POSITION
from parley.orchestrator.phases.assess import DISCUSSION, SUPPORT
from parley.orchestrator.phases.grouping import GROUPING
from parley.orchestrator.phases.history import heading, shorten_to_fit
from parley.orchestrator.phases.prompting import quotation
from parley.orchestrator.phases.summarize import SUMMARY
from parley.orchestrator.phases.vote import VOTE
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1.analysis_pb2 import Ground
from parley.v1.event_pb2 import StepSucceeded

_SAYS_NOTHING_NEW: Final = frozenset(
    each.name for each in (POSITION, DISCUSSION, SUPPORT, GROUPING, SUMMARY, VOTE)
)
"""Activities that repeat what others of the same agent argue."""
MAX_ROOM: Final = 24_000
"""Tokens of contributions that are shown at most: more is read less closely, and paid for."""
_MOST: Final = 40
"""Contributions that are shown, the newest: a name among more is easily mistaken."""
_MOST_SOURCES: Final = 59
"""Sources that have names, those that were cited most before the others: with the question and contributions they are 100, which convergence takes."""
_FEWEST_TOKENS: Final = 400
"""Of a contribution: before others are shortened to less, the oldest are left out."""


class Exhibits(Struct, frozen=True):
    """What is shown of a debate, each under its name.

    Attributes:
        contributions: By their names, `C1`, `C2`, …, oldest first; `keys`: of their steps, by the same names.
        sources: Numbers by name, `S1`, `S2`, ….
        left_out: Contributions that are not shown.
    """

    contributions: Mapping[str, Contribution]
    keys: Mapping[str, str]
    sources: Mapping[str, int]
    left_out: int = 0

    @property
    def names(self) -> list[str]:
        """All names."""
        return ["Q", *self.contributions, *self.sources]

    def to_prompt(self, debate: Debate) -> Prompt:
        """Return the contributions, each in a quotation of its own; sources and the question stand in the preamble."""
        return tuple(
            quotation(f"{name}, {heading(debate.letter, each)}", text_of(debate, each))
            for name, each in self.contributions.items()
        )

    def ground(self, name: str) -> Ground:
        """Return the place that a name stands for."""
        if name in self.keys:
            return Ground(contribution=self.keys[name])
        return Ground(source=self.sources[name]) if name in self.sources else Ground(question=True)


def collect_exhibits(debate: Debate, room: int, cited: Sequence[int]) -> Exhibits:
    """Return what is shown in so many tokens: the newest contributions to the rounds, the longest shortened in their middle.

    `cited` are numbers of sources, those first that have a name in any case.
    """
    made = _list_contributions(debate)
    kept = dict(list(made.items())[-min(_MOST, max(room // _FEWEST_TOKENS, 1)) :])
    shown = shorten_to_fit(tuple(kept.values()), room)
    names = [f"C{place}" for place, _ in enumerate(shown, start=1)]
    sources = _choose_sources(len(debate.documents.texts), cited)
    return Exhibits(
        dict(zip(names, shown, strict=True)),
        dict(zip(names, kept, strict=True)),
        {f"S{number}": number for number in sources},
        len(made) - len(kept),
    )


def list_cited(debate: Debate, answer: str) -> list[int]:
    """Return the numbers of the sources that the answer or a contribution cites, the most cited first."""
    found = Counter(count_citations(answer))
    for key, made in debate.made.items():
        if not made.work.summarized_characters and not key.startswith(AFTER_THE_ANSWER):
            found.update(count_citations(made.reply.rendered or made.reply.text))
    count = len(debate.documents.texts)
    return [number for number, _ in found.most_common() if number <= count]


def _choose_sources(count: int, cited: Sequence[int]) -> list[int]:
    ordered = dict.fromkeys([*cited, *range(1, count + 1)])
    return sorted(list(ordered)[:_MOST_SOURCES])


def _list_contributions(debate: Debate) -> dict[str, Contribution]:
    """Return what the agents contributed to the rounds, by the keys of their steps, oldest first."""
    agents = {each.id for each in debate.participants}
    return {
        key: _to_contribution(made)
        for key, made in debate.made.items()
        if made.work.round
        and made.work.agent_id in agents
        and made.work.activity not in _SAYS_NOTHING_NEW
        and (made.reply.rendered or made.reply.text).strip()
    }


def _to_contribution(made: StepSucceeded) -> Contribution:
    work, reply = made.work, made.reply
    return Contribution(
        work.agent_id,
        work.activity,
        work.round,
        reply.rendered or reply.text,
        target=work.target_agent_id,
        answers=tuple(reply.issue_answers),
    )


def text_of(debate: Debate, made: Contribution) -> str:
    """Return what is shown of a contribution: its text, and its answers to issues."""
    answers = answers_of(debate.letter, made)
    return f"{made.text}\n\nAnswers to issues:\n{answers}" if answers else made.text
