"""Confidence on real debates: whether decisions that are called so probable are right that often."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from statistics import mean
from typing import Final
from unittest.mock import patch

from parley.orchestrator.model import stopping
from parley.orchestrator.model.stopping import posterior
from tests.bench.figures import aim, main, table
from tests.support.real_debates import (
    Forecast,
    RealDebate,
    bins_of,
    calibration_error,
    discrimination,
    forecasts,
    read_real_debates,
)

_AIM: Final = 0.06
_VOTES: Final = {"first drafts": 0, "last answers": -1}
_LIKENESSES: Final = [round(0.05 * step, 2) for step in range(21)]
_SIZES: Final = (3, 5, 7)
_DRAWS: Final = 2000


async def run(_quick: bool) -> None:
    """Print how well the posterior is calibrated, by what and how many vote, and how it fares on questions it was not fitted to."""
    debates = read_real_debates()
    print(
        f"\n{len(debates)} debates on {len({each.question for each in debates})} questions, no agent with a record\n"
    )
    rows = [_errors(name, debates, place) for name, place in _VOTES.items()]
    table(["votes", "debates", *(f"{size} agents" for size in _SIZES), "error", "aim", "AUC"], rows)
    _print_others(debates)
    print("\nFirst drafts\n")
    table(["called", "debates", "mean", "right"], [_bin(each) for each in bins_of(forecasts(debates, 0))])
    _print_fit(debates)


def _errors(name: str, debates: Sequence[RealDebate], place: int) -> list[str]:
    by_size = [forecasts([each for each in debates if each.agents == size], place) for size in _SIZES]
    found = forecasts(debates, place)
    error = calibration_error(found)
    sizes = [f"{calibration_error(each):.3f}" for each in by_size]
    return [name, str(len(found)), *sizes, f"{error:.3f}", aim(error, _AIM), f"{discrimination(found):.2f}"]


def _bin(found: Sequence[Forecast]) -> list[str]:
    low = int(found[0].probability * 10) * 10
    called, right = mean(each.probability for each in found), mean(each.right for each in found)
    return [f"{low} to {low + 10} %", str(len(found)), f"{called:.0%}", f"{right:.0%}"]


def _print_others(debates: Sequence[RealDebate]) -> None:
    """Print the error if an answer takes another position than most first drafts, and on halves of the questions drawn at random."""
    every = [
        Forecast(probable, float(position == debate.truth))
        for debate in debates
        for position, probable in _compute_first_posterior(debate).items()
    ]
    later = [
        Forecast(_compute_first_posterior(debate)[last], float(last == debate.truth))
        for debate in debates
        if (last := _find_single_leader(debate)) in _compute_first_posterior(debate)
    ]
    print(f"\nfirst drafts, every position that one takes: error {calibration_error(every):.3f}")
    print(
        f"first drafts, the position that leads in the end, {len(later)} debates: error {calibration_error(later):.3f}"
    )
    questions = sorted({each.question for each in debates})
    found = {one: forecasts([each for each in debates if each.question == one], 0) for one in questions}
    dice = Random(0)
    halves = [dice.sample(questions, len(questions) // 2) for _ in range(_DRAWS)]
    errors = sorted(calibration_error([each for one in half for each in found[one]]) for half in halves)
    low, middle, high = (errors[int(_DRAWS * share)] for share in (0.025, 0.5, 0.975))
    print(
        f"first drafts, half of the questions: error {middle:.3f} [{low:.3f}, {high:.3f}], at most {_AIM} in {sum(each <= _AIM for each in errors) / _DRAWS:.0%}"
    )


def _compute_first_posterior(debate: RealDebate) -> Mapping[str, float]:
    votes = debate.votes(0)
    return posterior(votes, dict.fromkeys(votes, 1.0))


def _find_single_leader(debate: RealDebate) -> str:
    """Return the position that most agents hold in the end; empty if there is none, or several have as many."""
    counts = Counter(debate.votes(-1).values())
    leading = [each for each, count in counts.items() if count == max(counts.values())]
    return leading[0] if len(leading) == 1 else ""


def _print_fit(debates: Sequence[RealDebate]) -> None:
    """Print which likeness the debates ask for, and the error on each question with what the other questions ask for."""
    losses = {likeness: _losses(debates, likeness) for likeness in _LIKENESSES}
    questions = sorted({each.question for each in debates})
    best = min(_LIKENESSES, key=lambda each: sum(losses[each].values()))
    held_out: list[Forecast] = []
    chosen = set()
    for question in questions:
        likeness = min(_LIKENESSES, key=lambda each: sum(losses[each].values()) - losses[each][question])
        chosen.add(likeness)
        with patch.object(stopping, "LIKENESS", likeness):
            held_out += forecasts([each for each in debates if each.question == question], 0)
    print(
        f"\nlikeness by all questions: {best} (in use: {stopping.LIKENESS}); without one question: {sorted(chosen)}"
    )
    error = calibration_error(held_out)
    print(
        f"error on the first drafts of each question with what the others ask for: {error:.3f}, {aim(error, _AIM)}"
    )


def _losses(debates: Sequence[RealDebate], likeness: float) -> dict[str, float]:
    """Return the log loss of first drafts and last answers by question, if agents are alike so far."""
    found: dict[str, float] = {}
    with patch.object(stopping, "LIKENESS", likeness):
        for debate in debates:
            for place in _VOTES.values():
                votes = debate.votes(place)
                probable = stopping.posterior(votes, dict.fromkeys(votes, 1.0))
                right = probable.get(debate.truth, 1 - sum(probable.values()))
                found[debate.question] = found.get(debate.question, 0.0) - math.log(right)
    return found


if __name__ == "__main__":
    main(__doc__, run)
