"""The rounds of a debate, each folded up where the reader of the page can do that."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial

from parley.orchestrator.api.report_contribution import contribution_block, outside_round_block
from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.api.report_rhetoric import trickster_blocks
from parley.orchestrator.model.tasks import Activity
from parley.runtime.safe_markdown import fold, inline
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1.debate_pb2 import Contribution

Activities = dict[str, list[Contribution]]
"""Contributions by their activities, in the order of the log."""


def rounds_sections(page: ReportPage) -> Iterator[str]:
    """Yield what was contributed before the first round, then in each round that was begun, then after them, but the answer."""
    early, by_round, late = _split(page)
    if early:
        yield "## Before the rounds"
        yield from fold(_count_words(page, _group(early)), _outside(page, early))
    yield from _rounds(page, by_round)
    if late:
        yield "## After the rounds"
        yield from fold(_count_words(page, _group(late)), _outside(page, late))


def _split(page: ReportPage) -> tuple[list[Contribution], dict[int, Activities], list[Contribution]]:
    """Return what was contributed before the first round, in each round that was begun, and in none after the first.

    What has a section of its own, such as requirements, is left out. Without any round, all comes last.
    """
    by_round: dict[int, Activities] = {number: {} for number in page.debate.begun_rounds if number}
    early: list[Contribution] = []
    late: list[Contribution] = []
    has_rounds = False
    for made in page.contributions:
        work = made.work
        if number := work.round:
            if not has_rounds:
                has_rounds, early, late = True, late, []
            by_round.setdefault(number, {}).setdefault(work.activity, []).append(made)
        else:
            late.append(made)
    is_elsewhere = partial(_is_elsewhere, {each.name for each in _activities(page) if not each.heading})
    return (
        [made for made in early if made.is_answer or not is_elsewhere(made)],
        by_round,
        [made for made in late if not made.is_answer and not is_elsewhere(made)],
    )


def _is_elsewhere(activities: Collection[str], made: Contribution) -> bool:
    return made.work.activity in activities or made.key.startswith(AFTER_THE_ANSWER)


def _rounds(page: ReportPage, by_round: dict[int, Activities]) -> Iterator[str]:
    if by_round:
        yield "## Rounds"
    for number, activities in sorted(by_round.items()):
        yield f"### Round {number}"
        if activities:
            yield from fold(_count_words(page, activities), _round(page, number, activities))
        else:
            yield "Nothing was contributed."


def _outside(page: ReportPage, contributions: Iterable[Contribution]) -> Iterator[str]:
    return (outside_round_block(page, made) for made in contributions)


def _group(contributions: Iterable[Contribution]) -> Activities:
    found: Activities = {}
    for made in contributions:
        found.setdefault(made.work.activity, []).append(made)
    return found


def _round(page: ReportPage, number: int, activities: Activities) -> Iterator[str]:
    headings = _headings(page)
    for activity in _sort(activities, headings):
        yield f"#### {headings.get(activity, inline(activity.capitalize()))}"
        for made in activities[activity]:
            yield contribution_block(page, made)
    for finding in page.debate.trickster_findings:
        if finding.round == number:
            yield from trickster_blocks(finding, page.names)


def _headings(page: ReportPage) -> dict[str, str]:
    """Return the headings of a format's activities, in the order in which they are shown."""
    return {each.name: each.heading for each in _activities(page) if each.heading}


def _activities(page: ReportPage) -> Sequence[Activity]:
    return page.debate_format.activities if page.debate_format else ()


def _sort(activities: Collection[str], headings: dict[str, str]) -> list[str]:
    others = [activity for activity in activities if activity not in headings]
    return [activity for activity in headings if activity in activities] + others


def _count_words(page: ReportPage, activities: Activities) -> str:
    """Return what a round holds, such as `Proposals: 3, Critiques: 6`."""
    headings = _headings(page)
    return ", ".join(
        f"{headings.get(activity, activity.capitalize())}: {len(activities[activity])}"
        for activity in _sort(activities, headings)
    )
