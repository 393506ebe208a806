"""What a person reads at the checkpoint after a round: what was said and by whom, what the moderator makes of it, what each choice leads to."""

import re
from collections.abc import Iterator
from typing import Final

from parley.orchestrator.formats.moderated.discussion import Discussion
from parley.orchestrator.formats.moderated.points import Point
from parley.orchestrator.formats.moderated.rounds import Verdict
from parley.orchestrator.model.short_text import to_beginning, to_line
from parley.v1.agent_pb2 import Agent
from parley.v1.event_pb2 import RoundsEnded

_MAX_POINT: Final = 250
_MAX_ANSWERS: Final = 3
"""Answers to others that are shown of a debater."""
_MAX_SUMMARY: Final = 4000
"""Characters. With four debaters of five points each, all of it stays below 15,000."""
_AGENT: Final = re.compile(r"\b[Aa]gent ([A-Z]{1,2})\b(?: \([^()]*\))?")


def describe_checkpoint(discussion: Discussion, verdict: Verdict, ended: RoundsEnded | None) -> str:
    """Return where the debate stands after its last round (CommonMark). `ended`: why there is no other one without a word; None if there is."""
    current, last = discussion.rounds[-1], discussion.settings.max_rounds
    found = verdict.finding[0].upper() + verdict.finding[1:]
    why = ""
    if ended is not None and verdict.end is None:
        why = f" {ended.explanation[0].upper()}{ended.explanation[1:]}."
    summary = to_beginning(current.summary, _MAX_SUMMARY)
    blocks = (
        f"**Round {current.number} of at most {last}**",
        *(_describe_debater(discussion, each) for each in current.debaters),
        f"**The moderator**\n\n{_name_agents(discussion, summary)}",
        f"{_name_agents(discussion, found).rstrip('.')}.{why}",
        _describe_choices(current.number, last, ended),
    )
    return "\n\n".join(blocks)


def _describe_debater(discussion: Discussion, agent: Agent) -> str:
    """Return what a debater has said in the round: its position, its points, and its first answers to others."""
    current = discussion.rounds[-1]
    name = f"**{discussion.viewpoints[agent.id].name}** ({discussion.debate.letter(agent.id)})"
    speech = current.arguments.get(agent.id)
    if speech is None:
        return f"{name}: said nothing in this round."
    position = next(each.position for each in current.positions() if each.agent == agent.id)
    head = f"{name}: {_in_line(position)}" if position else f"{name}:"
    return "\n".join([head, "", *_point_lines(speech.points), *_answer_lines(discussion, agent.id)])


def _point_lines(points: tuple[Point, ...]) -> Iterator[str]:
    for each in points:
        to = f", to {each.answers}" if each.answers else ""
        yield f"- {each.name}{to}: {_in_line(each.text)}"


def _answer_lines(discussion: Discussion, agent: str) -> Iterator[str]:
    rebuttal = discussion.rounds[-1].rebuttals.get(agent)
    points = rebuttal.points if rebuttal is not None else ()
    yield from _point_lines(points[:_MAX_ANSWERS])
    if len(points) > _MAX_ANSWERS:
        more = len(points) - _MAX_ANSWERS
        yield f"- and {more} more {'answer' if more == 1 else 'answers'}"
    for each in discussion.rounds[-1].replies:
        if each.agent == agent:
            yield f"- to the moderator: {_in_line(each.text)}"


def _in_line(text: str) -> str:
    return to_line(text, _MAX_POINT)


def _name_agents(discussion: Discussion, text: str) -> str:
    """Return a text of the moderator with the perspectives' names in place of `agent B`."""
    names = {
        discussion.debate.letter(agent): viewpoint.name for agent, viewpoint in discussion.viewpoints.items()
    }
    return _AGENT.sub(
        lambda found: f"{names[found[1]]} ({found[1]})" if found[1] in names else found[0], text
    )


def _describe_choices(number: int, last: int, ended: RoundsEnded | None) -> str:
    following = f"round {number + 1} of at most {last}"
    if ended is None:
        return (
            f"Continue: {following} is held. Guide: the same, with what you say before everybody."
            " End: the moderator writes the decision now."
        )
    if number < last:
        return (
            "Continue or End: the rounds end here, and the moderator writes the decision."
            f" Guide: {following} is held all the same, with what you say before everybody."
        )
    return (
        "Continue or End: the moderator writes the decision. Guide: the same, with what you say before it;"
        " this was the last round."
    )
