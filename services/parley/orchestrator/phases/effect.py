"""What a debate changed: who writes the answer groups the agents' positions in it, so that no call is made for that."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.deciding import weigh_judge
from parley.orchestrator.model.effect import NO_POSITION, Ballots, create_effect
from parley.orchestrator.model.model_families import family_of
from parley.orchestrator.model.stands import (
    FIRST_DRAFT,
    Stand,
    distinct_positions,
    first_and_last,
    name_groups,
)
from parley.orchestrator.model.tasks import Prompt
from parley.orchestrator.phases.grouping import (
    GROUPING_RULES,
    PositionGroups,
    bounded_schema,
    position_names,
    quote_positions,
    read_groups,
)
from parley.orchestrator.phases.schemas import Line
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import AnswerDetails, DraftGroups
from parley.v1.effect_pb2 import DebateEffect, QuestionKind

_MAX_SHOWN: Final = 16
"""Positions beyond which only those at first and in the end are shown: the more there are, the worse they are grouped."""
_NONE: Final = "none"
_NOT_ASKED: Final = "no agent was asked which positions are the same"
_NOT_GROUPED: Final = "who wrote the answer did not group the positions"


class AnswerPositions(PositionGroups):
    """Which positions are the same answer, and which of them the answer takes, as who writes it says."""

    answer: Line = ""


class PositionQuestion(Struct, frozen=True):
    """What who writes an answer is asked about the positions: P1, P2, … in this order; nothing if there are none.

    Attributes:
        positions: Each once, in an order of chance.
    """

    positions: tuple[str, ...] = ()

    def to_prompt(self) -> Prompt:
        """Return the positions as a prompt shows them."""
        return quote_positions(self.positions)

    def to_task(self) -> str:
        """Return what is asked, as the end of a task; empty if nothing is."""
        if not self.positions:
            return ""
        names = (
            f"P1 to P{len(self.positions)} are positions" if len(self.positions) > 1 else "P1 is the position"
        )
        return (
            f"\nLast, fill in `positions`. {names} that agents took at first or later. Group them. {GROUPING_RULES} In `answer`,"
            f" name one that gives the same answer as yours, or write {_NONE} if none does."
        )

    def schema(self) -> dict[str, Any]:
        """Return the schema of the answer to it; there has to be a position."""
        schema = bounded_schema(len(self.positions))
        schema["properties"]["answer"] = {
            "type": "string",
            "description": "A position that gives the same answer as yours.",
            "enum": [*position_names(len(self.positions)), _NONE],
        }
        schema["required"] = list(schema["properties"])
        return schema


NOTHING_ASKED: Final = PositionQuestion()


def ask_positions(debate: Debate, stands: Sequence[Stand]) -> PositionQuestion:
    """Return what is asked about the positions of a debate."""
    shown = distinct_positions(stands)
    if len(shown) > _MAX_SHOWN:
        shown = distinct_positions(first_and_last(stands))
    debate.random("positions").shuffle(shown)
    return PositionQuestion(tuple(shown))


class NamedPositions(Struct, frozen=True):
    """The positions of a debate by name, as far as they are known.

    Attributes:
        names: The name of each position by its words.
        answer: The name of the one that the answer takes; `NO_POSITION` if it is known to take none, None if it is not known.
        unknown: Why a position has no name.
    """

    names: dict[str, str]
    answer: str | None = None
    unknown: str = _NOT_ASKED


def name_positions(
    stands: Sequence[Stand],
    drafts: DraftGroups | None,
    asked: PositionQuestion = NOTHING_ASKED,
    said: AnswerPositions | None = None,
) -> NamedPositions:
    """Return the positions by name: as the first drafts were grouped, if that is certain, and as who wrote the answer says."""
    groups, unknown = _read(asked, said)
    firsts = {stand.agent: stand.words for stand in stands if stand.round == FIRST_DRAFT and stand.text}
    known = drafts.groups if drafts is not None and drafts.certain else ()
    stated = [{firsts[each] for each in group.agent_ids if each in firsts} for group in known]
    names = name_groups(groups, filter(None, stated))
    if said is None or not said.answer:
        return NamedPositions(names, None, unknown)
    taken = said.answer.upper()
    if taken == _NONE.upper():
        return NamedPositions(names, NO_POSITION, unknown)
    words = dict(zip(position_names(len(asked.positions)), asked.positions, strict=True))
    return NamedPositions(names, names.get(words.get(taken, "")), unknown)


def _read(asked: PositionQuestion, said: AnswerPositions | None) -> tuple[Sequence[Collection[str]], str]:
    """Return the groups of positions that were said, and why one may be in none."""
    if len(asked.positions) == 1:
        return [asked.positions], ""
    if not asked.positions:
        return (), _NOT_ASKED
    if said is None:
        return (), _NOT_GROUPED
    groups = read_groups(said, asked.positions)
    if isinstance(groups, str):
        return (), f"who wrote the answer grouped the positions badly: {groups}"
    return (
        [[asked.positions[place] for place in group] for group in groups],
        "who wrote the answer could not tell which positions are the same",
    )


def describe_effect(
    debate: Debate,
    judge: Agent | None,
    stands: Sequence[Stand],
    positions: NamedPositions,
    kind: QuestionKind.ValueType,
    judge_word: str = "",
    ballots: Ballots | None = None,
) -> DebateEffect:
    """Return what a debate changed, and whose models took part.

    Args:
        judge: Who wrote the answer or judged, if one did.
        judge_word: How sure it says to be; empty if it did not.
        ballots: Those of a vote. None: there was none, and what a judge that is called stronger answers is its ballot.
    """
    if ballots is None and judge is not None and judge.stronger:
        ballots = Ballots(positions.answer, weigh_judge(0, 0, stronger=True).weight)
    effect = create_effect(stands, positions.names, positions.answer, kind, ballots, positions.unknown)
    effect.confidence.judge_word = judge_word
    models = _list_models(debate)
    effect.agent_families.extend(sorted(set(filter(None, _families(models, debate.participants)))))
    effect.judge_family = next(_families(models, (judge,)), "") if judge else ""
    return effect


def word_of(details: AnswerDetails) -> str:
    """Return how sure who wrote an answer says to be; empty if it did not."""
    return f"{details.confidence} of 100" if details.HasField("confidence") else ""


def _list_models(debate: Debate) -> Collection[tuple[str, str, str]]:
    """Return the models that have answered, each once with its agent and its route: a debate has thousands of replies."""
    replies = ((made.work.agent_id, made.reply) for made in debate.replies)
    return dict.fromkeys((agent, reply.route, reply.model) for agent, reply in replies)


def _families(models: Collection[tuple[str, str, str]], agents: Sequence[Agent]) -> Iterator[str]:
    """Yield the model families that have answered for these agents, empty where a name shows none."""
    by_id = {each.id: each for each in agents}
    for agent, route, model in models:
        if agent in by_id:
            yield _family_of(by_id[agent], route, model)


def _family_of(agent: Agent, route: str, model: str) -> str:
    """Return the family of a model. A provider's name shows it only as far as it did when the debate was created: for the first route."""
    named = family_of(route)
    is_first = not agent.routes or route == agent.routes[0]
    if is_first and named == agent.model_family:
        return family_of(model) or named
    return family_of(model) or family_of(route.partition("/")[2])
