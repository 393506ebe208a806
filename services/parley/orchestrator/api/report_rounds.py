"""The rounds of a debate, each folded up where the reader of the page can do that."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from parley.orchestrator.api.report_contribution import contribution_block, outside_round_block
from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.api.report_rhetoric import trickster_blocks
from parley.runtime.safe_markdown import folded, inline
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1.debate_pb2 import Contribution


def before_rounds(page: ReportPage) -> Iterator[str]:
    """Yield the contributions before the first round."""
    early = _before_first_round(_contributions_to_show(page))
    if early:
        yield "## Before the rounds"
        yield from folded(_count_words(page, early), _outside(page, early))


def rounds_section(page: ReportPage) -> Iterator[str]:
    """Yield the rounds that were begun, and what was contributed in each."""
    debate = page.debate
    by_round: dict[int, list[Contribution]] = {number: [] for number in debate.begun_rounds}
    for made in debate.contributions:
        by_round.setdefault(made.work.round, []).append(made)
    numbers = sorted(by_round.keys() - {0})
    if numbers:
        yield "## Rounds"
    for number in numbers:
        yield f"### Round {number}"
        contributions = by_round[number]
        if contributions:
            yield from folded(_count_words(page, contributions), _round(page, number, contributions))
        else:
            yield "Nothing was contributed."


def after_rounds(page: ReportPage) -> Iterator[str]:
    """Yield what was contributed after the rounds, but the answer."""
    contributions = _contributions_to_show(page)
    late = [
        made
        for made in contributions[len(_before_first_round(contributions)) :]
        if made.work.round == 0 and not made.is_answer
    ]
    if late:
        yield "## After the rounds"
        yield from folded(_count_words(page, late), _outside(page, late))


def _contributions_to_show(page: ReportPage) -> Sequence[Contribution]:
    """Return the contributions without those that have a section of their own, such as requirements."""
    activities = page.debate_format.activities if page.debate_format else ()
    elsewhere = {each.name for each in activities if not each.heading}
    return tuple(
        made
        for made in page.debate.contributions
        if made.is_answer or not (made.work.activity in elsewhere or made.key.startswith(AFTER_THE_ANSWER))
    )


def _before_first_round(contributions: Sequence[Contribution]) -> Sequence[Contribution]:
    """Return the contributions before the first round."""
    if not any(made.work.round for made in contributions):
        return ()
    return tuple(itertools.takewhile(lambda made: not made.work.round, contributions))


def _outside(page: ReportPage, contributions: Iterable[Contribution]) -> Iterator[str]:
    return (outside_round_block(page, made) for made in contributions)


def _round(page: ReportPage, number: int, contributions: Sequence[Contribution]) -> Iterator[str]:
    headings = _headings(page)
    by_activity: dict[str, list[Contribution]] = {}
    for made in contributions:
        by_activity.setdefault(made.work.activity, []).append(made)
    for activity in _activities(contributions, headings):
        yield f"#### {headings.get(activity, inline(activity.capitalize()))}"
        for made in by_activity[activity]:
            yield contribution_block(page, made)
    for finding in page.debate.trickster_findings:
        if finding.round == number:
            yield from trickster_blocks(finding, page.names)


def _headings(page: ReportPage) -> dict[str, str]:
    """Return the headings of a format's activities, in the order in which they are shown."""
    activities = page.debate_format.activities if page.debate_format else ()
    return {each.name: each.heading for each in activities if each.heading}


def _activities(contributions: Sequence[Contribution], headings: dict[str, str]) -> list[str]:
    found = dict.fromkeys(made.work.activity for made in contributions)
    others = [activity for activity in found if activity not in headings]
    return [activity for activity in headings if activity in found] + others


def _count_words(page: ReportPage, contributions: Sequence[Contribution]) -> str:
    """Return what a round holds, such as `Proposals: 3, Critiques: 6`."""
    headings, count = _headings(page), Counter(made.work.activity for made in contributions)
    return ", ".join(
        f"{headings.get(activity, activity.capitalize())}: {count[activity]}"
        for activity in _activities(contributions, headings)
    )
