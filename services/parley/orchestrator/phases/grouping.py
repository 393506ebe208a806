"""Asking an agent which positions are the same answer.

Positions are shown as P1, P2, … in an order of chance, without the names of their agents, and the answer names them so. It is
believed only if it says of each of them where it belongs. An agent of which no answer was judged yet is asked twice, the
second time with the positions in the opposite order, and only what it says both times counts.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.tasks import Activity, AnswerShape, Prompt, Task, user_part
from parley.orchestrator.phases.prompting import preamble, quotation
from parley.orchestrator.phases.schemas import prompt_schema, schema_text
from parley.v1.agent_pb2 import Agent
from parley.v1.convergence_pb2 import SettledPair
from parley.v1.event_pb2 import StepFailed
from parley.v1.ratings_pb2 import GetWeightsRequest

GROUPING = Activity("grouping", "groups the positions", title="grouping of the positions")
_RECORD = Activity("grouping-record", "looking up a record", title="record of who groups the positions")

GROUPING_RULES: Final = (
    "Positions belong together if they give the same answer: the same choice or the same result. Other words, other reasons, more"
    " or fewer details and another language do not matter. Another choice, another number or date, another order, a condition that"
    " changes what is done, and the opposite are other answers. Put each position into exactly one group, by its name, such as P1; a"
    " number in the text of a position is not its name. A position that belongs with no other is a group of its own. If you cannot"
    " tell what a position answers, name it in `cannot_be_told` and in no group. Do not judge which answer is right."
)
"""How positions are to be grouped."""
_MARKS: Final = str.maketrans("", "", "*`\"'")
_MAX_QUOTED: Final = 80
"""Characters of a position in a line about it."""
_PROMPT: Final = "{names} are positions that agents take on the question. Group them. "


class PositionGroups(BaseModel):
    """Groups of positions, as they are asked for."""

    model_config = ConfigDict(extra="forbid")

    groups: Annotated[
        list[list[str]], Field(description="The groups, each a list of the names of its positions.")
    ]
    cannot_be_told: Annotated[
        list[str], Field(description="Names of positions of which it cannot be told what they answer.")
    ] = []


def position_names(count: int) -> list[str]:
    """Return the names of so many positions: P1, P2 and so on."""
    return [f"P{place}" for place in range(1, count + 1)]


def quote_positions(positions: Sequence[str]) -> Prompt:
    """Return positions under their names."""
    return tuple(map(quotation, position_names(len(positions)), positions))


def bounded_schema(count: int) -> dict[str, Any]:
    """Return the schema of an answer that groups so many positions."""
    schema = prompt_schema(PositionGroups)
    name = {"type": "string", "enum": position_names(count)}
    schema["properties"]["groups"]["items"] = {"type": "array", "items": name, "minItems": 1}
    schema["properties"]["cannot_be_told"]["items"] = name
    del schema["properties"]["cannot_be_told"]["default"]
    schema["required"] = ["groups", "cannot_be_told"]
    return schema


def read_groups(answer: PositionGroups, positions: Sequence[str]) -> list[list[int]] | str:
    """Return the places of the positions in each group, from 0; positions that cannot be told are in none.

    If the answer does not name each of the positions once, or names others, return what is wrong with it, for people: they know
    a position by its words.
    """
    names = position_names(len(positions))
    groups = [_clean(group) for group in answer.groups]
    given = Counter([*chain(*groups), *_clean(answer.cannot_be_told)])
    wrong = [f"{each[:20]!r} is the name of no position" for each in given if each not in names]
    words = dict(zip(names, map(_quote, positions), strict=True))
    wrong += [f"it leaves out the position {words[each]}" for each in names if not given[each]]
    wrong += [f"it names the position {words[each]} more than once" for each in names if given[each] > 1]
    return wrong[0] if wrong else [[names.index(each) for each in group] for group in groups if group]


def _quote(position: str) -> str:
    line = " ".join(position.split())
    return f"“{line[:_MAX_QUOTED]}…”" if len(line) > _MAX_QUOTED else f"“{line}”"


def _clean(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name.strip().upper() for name in names))


Asked = Callable[[], Agent]
"""Returns who is asked, at the moment of asking."""


async def ask_groups(
    debate: Debate, key: str, number: int, asked: Asked, positions: Sequence[str]
) -> list[SettledPair]:
    """Return which pairs of positions are the same answer and which are not, as an agent says; others cannot be told.

    Nobody is asked about fewer than two different positions.
    """
    shown = list({_words(each): each for each in positions}.values())
    if len(shown) < 2:
        return []
    agent = asked()
    debate.random(key).shuffle(shown)
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(_ask_once(debate, key, number, agent, shown))
        again = None
        if not await _has_record(debate, f"{key}/record", number, agent):
            again = tasks.create_task(_ask_once(debate, f"{key}/again", number, agent, shown[::-1]))
    found = first.result()
    confirmed = found if again is None else again.result()
    return [
        SettledPair(position=one, other_position=other, same=same)
        for (one, other), same in found.items()
        if confirmed.get((one, other)) is same
    ]


def _words(position: str) -> str:
    """Return the words of a position, without case and marks unless it has a number: `2*3` is not `23`, nor `5 mW` `5 MW`."""
    plain = " ".join(position.split()).rstrip(".")
    has_number = any(map(str.isdigit, plain))
    return plain if has_number else " ".join(plain.casefold().translate(_MARKS).split())


async def _has_record(debate: Debate, key: str, number: int, agent: Agent) -> bool:
    """Return whether answers of an agent were judged; False if that is not known."""
    request = GetWeightsRequest(agent_ids=[agent.id], domain=debate.spec.domain)
    work = _RECORD.create_work(round_number=number)
    found = await debate.call_service(
        key, work, request, lambda: debate.services.ratings.get_weights(request)
    )
    return not isinstance(found, StepFailed) and any(each.rating.judged_answers for each in found.weights)


async def _ask_once(
    debate: Debate, key: str, number: int, agent: Agent, shown: Sequence[str]
) -> Mapping[tuple[str, str], bool]:
    """Return for each pair of positions, in the order of the alphabet, whether it is the same answer; nothing if that is not known."""
    names = f"P1 to P{len(shown)}"
    prompt = (
        *preamble(debate, agent, documents=False),
        *quote_positions(shown),
        user_part(_PROMPT.format(names=names) + GROUPING_RULES),
    )
    shape = AnswerShape("grouping", PositionGroups, schema_text(bounded_schema(len(shown))), _render_groups)
    answer = await debate.ask_structured(
        key, agent, Task(GROUPING.create_work(agent.id, number), prompt), shape
    )
    groups = answer if isinstance(answer, StepFailed) else read_groups(answer, shown)
    if isinstance(groups, StepFailed | str):
        why = groups if isinstance(groups, str) else groups.message
        debate.warn(key, f"{agent.id} did not say which positions are the same answer: {why}")
        return {}
    placed = {shown[place]: group for group, members in enumerate(groups) for place in members}
    return {(one, other): placed[one] == placed[other] for one, other in combinations(sorted(placed), 2)}


def _render_groups(answer: PositionGroups) -> str:
    said = "; ".join(" and ".join(each) for each in answer.groups) or "no position could be grouped"
    return f"{said}; cannot be told: {', '.join(answer.cannot_be_told)}" if answer.cannot_be_told else said
