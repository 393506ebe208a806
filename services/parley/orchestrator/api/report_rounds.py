"""The rounds of a debate, each folded up where the reader of the page can do that."""

from collections.abc import Collection, Iterable, Iterator

from parley.orchestrator.api.report_contribution import contribution_block, outside_round_block
from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.api.report_rhetoric import trickster_blocks
from parley.runtime.safe_markdown import fold, inline
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1.debate_pb2 import Contribution

Activities = dict[str, list[Contribution]]
"""Contributions by their activities, in the order of the log."""


def rounds_sections(page: ReportPage) -> Iterator[str]:
    """Yield what was contributed before the first round, then in each round that was begun, then after them, but the answer."""
    early, late = _split_outside_rounds(page)
    if early:
        yield "## Before the rounds"
        yield from fold(_count_words(page, _group(early)), _outside(page, early))
    yield from _rounds(page)
    if late:
        yield "## After the rounds"
        yield from fold(_count_words(page, _group(late)), _outside(page, late))


def _split_outside_rounds(page: ReportPage) -> tuple[list[Contribution], list[Contribution]]:
    """Return the contributions before the first round and those after it, but those that have a section of their own, such as requirements."""
    activities = page.debate_format.activities if page.debate_format else ()
    elsewhere = {each.name for each in activities if not each.heading}
    early: list[Contribution] = []
    late: list[Contribution] = []
    has_rounds = False
    for made in page.contributions:
        work = made.work
        if has_rounds and work.round:
            continue
        if not made.is_answer and (work.activity in elsewhere or made.key.startswith(AFTER_THE_ANSWER)):
            continue
        if work.round:
            has_rounds = True
        else:
            (late if has_rounds else early).append(made)
    if not has_rounds:
        early, late = [], early
    return early, [made for made in late if not made.is_answer]


def _rounds(page: ReportPage) -> Iterator[str]:
    """Yield the rounds that were begun, and what was contributed in each."""
    by_round: dict[int, Activities] = {number: {} for number in page.debate.begun_rounds}
    for made in page.contributions:
        work = made.work
        by_round.setdefault(work.round, {}).setdefault(work.activity, []).append(made)
    numbers = sorted(by_round.keys() - {0})
    if numbers:
        yield "## Rounds"
    for number in numbers:
        yield f"### Round {number}"
        if activities := by_round[number]:
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
    activities = page.debate_format.activities if page.debate_format else ()
    return {each.name: each.heading for each in activities if each.heading}


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
