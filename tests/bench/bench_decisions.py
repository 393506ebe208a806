"""Decisions on real debates and in simulated panels: what judges, weights, debate, stops and topologies change.

It fails if an aim of the default decision is missed.
"""

import sys
from collections.abc import Sequence
from typing import Final

from parley.orchestrator.model.model_families import shared_family
from parley.v1.agent_pb2 import Agent
from tests.bench.decisions.agents import PANELS, REGIMES, Kind
from tests.bench.decisions.cells import Cell, Size, cells
from tests.bench.decisions.engine import routes
from tests.bench.decisions.judges import HISTORIES, JUDGES, JudgeCell, find_worst, judge_cells
from tests.bench.decisions.real import CALLED_STRONGER, Gain, measure_gains
from tests.bench.decisions.sample import Sample, sample
from tests.bench.figures import main, table

_FULL: Final = Size()
_QUICK: Final = Size(100, 2)
_MIXED: Final = ("mixed skill", "one strong")
_TOPOLOGIES: Final = ("ring", "star")
_OTHERS: Final = (Kind.SYCOPHANT, Kind.LOUD_FOOL)
_DECISIONS: Final = ("majority", "log-odds", "decision")
_JUDGED_QUESTIONS: Final = 20_000
_MISCALLED: Final = JUDGES[-1].name
"""The judge that shows what a wrong word in the configuration costs: nothing is aimed at there."""


async def run(quick: bool) -> None:
    """Decide the real debates and all cells, hold a sample through the whole system, and print the tables and the aims."""
    gains, judged = measure_gains(), judge_cells(_JUDGED_QUESTIONS)
    print(
        "\nReal debates: the default over the majority of first drafts, points, 95 % interval by question\n"
    )
    _print_gains(gains)
    print(f"\nSimulated first drafts: the same, in the worst cell; {_JUDGED_QUESTIONS:,} questions a cell\n")
    _print_judges(judged)
    size = _QUICK if quick else _FULL
    found = cells(PANELS, REGIMES, size)
    samples = await sample(PANELS[-1:] if quick else PANELS)
    for title, print_table in (
        (f"Right, % or points; {size.questions * size.seeds} questions a cell", _decisions),
        ("Ends, against three rounds of revision", _ends),
        ("Topologies, and a sixth agent: points", _company),
    ):
        print(f"\n{title}\n")
        print_table(found)
    print("\nThrough the whole system\n")
    _print_samples(samples)
    print("\nOther rules, ends and topologies, and how the default compares with three rounds\n")
    table(["aim", "", "worst"], [*_comparisons(found), *_aims_of_tokens(samples)])
    aims = [*_aims_of_real(gains), *_aims_of_judges(judged), *_aims(found)]
    print("\nAims of the default decision\n")
    table(["aim", "", "worst"], aims)
    if any(verdict != "met" for _, verdict, _ in aims):
        sys.exit("an aim of the default decision is missed")


def _print_gains(gains: Sequence[Gain]) -> None:
    table(
        ["judge", "debates with a judge", "questions", "majority, %", "default"],
        [
            [each.judge, str(each.pairs), str(each.questions), f"{each.majority:.1f}", _interval(each)]
            for each in gains
        ],
    )


def _interval(gain: Gain) -> str:
    return f"{gain.points:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]"


def _print_judges(cells: Sequence[JudgeCell]) -> None:
    rows = []
    for judge in JUDGES:
        for history in HISTORIES:
            for judged in (False, True):
                some = [
                    each
                    for each in cells
                    if (each.judge, each.history, each.judged) == (judge.name, history, judged)
                ]
                if some:
                    gains = sorted(each.gain for each in some)
                    worst = find_worst(some)
                    rows.append(
                        [
                            judge.name,
                            f"{judge.skill:.2f}",
                            str(history),
                            "yes" if judged else "no",
                            f"{worst.gain:+.1f} ± {worst.spread:.1f}, {worst.panel}",
                            f"{gains[len(gains) // 2]:+.1f}",
                        ]
                    )
    table(["judge", "right", "judged debates", "judge has a record", "worst panel", "median panel"], rows)


def _decisions(found: Sequence[Cell]) -> None:
    table(
        [
            "panel",
            "peers",
            "one agent",
            "best agent",
            "drafts",
            "by Elo",
            "by log-odds",
            "ties by the judge",
            "the default",
            "three rounds",
            "debate adds",
            "by Elo",
            "by log-odds",
            "by the judge",
            "the default, over three rounds",
        ],
        [
            [
                each.panel.name,
                each.regime.name,
                each.percent("mean agent"),
                each.percent("best agent"),
                each.percent("drafts, majority"),
                each.points("drafts, Elo", "drafts, majority"),
                each.points("drafts, log-odds", "drafts, majority"),
                each.points("decision, each weighs 1", "drafts, majority"),
                each.points("decision", "drafts, majority"),
                each.percent("majority"),
                each.points("majority", "drafts, majority"),
                each.points("Elo", "majority"),
                each.points("log-odds", "majority"),
                each.points("judge", "majority"),
                each.points("decision", "majority"),
            ]
            for each in found
        ],
    )


def _ends(found: Sequence[Cell]) -> None:
    table(
        [
            "panel",
            "peers",
            "calls",
            "adaptive",
            "of the calls",
            "ended after drafts",
            "asked in turn, by the default",
            "of the calls",
        ],
        [
            [
                each.panel.name,
                each.regime.name,
                f"{each.mean('calls'):.0f}",
                each.points("adaptive", "majority"),
                f"{_share(each, 'calls, adaptive'):.0f} %",
                f"{100 * each.mean('ended after drafts'):.0f} %",
                each.points("in turn", "decision"),
                f"{_share(each, 'calls, in turn'):.0f} %",
            ]
            for each in found
        ],
    )


def _company(found: Sequence[Cell]) -> None:
    named = [f"{kind.value}, {by}" for kind in _OTHERS for by in _DECISIONS]
    table(
        ["panel", "peers", *_TOPOLOGIES, *named],
        [
            [
                each.panel.name,
                each.regime.name,
                *(each.points(topology, "majority") for topology in _TOPOLOGIES),
                *(each.points(f"{kind.value}, {by}", by) for kind in _OTHERS for by in _DECISIONS),
            ]
            for each in found
        ],
    )


def _print_samples(samples: Sequence[Sample]) -> None:
    table(
        [
            "topology",
            "ends",
            "debates",
            "as in process",
            "by drafts",
            "calls",
            "grouping calls",
            "input tokens",
            "one voice",
        ],
        [
            [
                each.topology,
                each.ends,
                str(each.debates),
                str(each.agreeing),
                str(each.by_drafts),
                f"{each.calls:.0f}",
                f"{each.grouped:.1f}",
                f"{each.tokens:,.0f}",
                ", ".join(sorted(each.one_voice)),
            ]
            for each in samples
        ],
    )


def _aims_of_real(gains: Sequence[Gain]) -> list[list[str]]:
    unknown = min((each for each in gains if "no record" in each.judge), key=lambda each: each.points)
    called = next(each for each in gains if each.judge == CALLED_STRONGER)
    return [
        [
            f"{what}: at least {least:+g} points",
            _describe_aim(each.points >= least),
            f"{_interval(each)}, {each.judge}",
        ]
        for what, each, least in (
            ("real debates, a judge without a record", unknown, 0.0),
            ("real debates, a judge that is called stronger", called, 5.0),
        )
    ]


def _aims_of_judges(cells: Sequence[JudgeCell]) -> list[list[str]]:
    rows = []
    for what, history in (("without a history", (0,)), ("with a history", HISTORIES[1:])):
        some = [each for each in cells if each.history in history and each.judge != _MISCALLED]
        worst = find_worst(some)
        missed = sum(each.gain < -1 for each in some)
        rows.append(
            [
                f"the default over the majority of the drafts, {what}, {len(some)} cells: at least -1 points",
                "met" if not missed else f"missed in {missed}",
                f"{worst.gain:+.1f} ± {worst.spread:.1f}, {worst.name}",
            ]
        )
    return rows


def _aims(found: Sequence[Cell]) -> list[list[str]]:
    mixed, over = [each for each in found if each.panel.name in _MIXED], "drafts, majority"
    what = "the default over the majority of the drafts"
    rows = [
        _check_least(f"{what}, with a history, every panel", found, ("decision", over), -1.0),
        _check_least(f"{what}, with a history, mixed panels", mixed, ("decision", over), 1.5),
        _check_least(
            f"{what}, without a history, every panel", found, ("decision, each weighs 1", over), -1.0
        ),
    ]
    voices = [each.name for each in PANELS if shared_family([_agent(route) for route in routes(each)])]
    echo = PANELS[-1].name
    return [
        *rows,
        ["one voice: the echo and nothing else", _describe_aim(voices == [echo]), ", ".join(voices)],
    ]


def _comparisons(found: Sequence[Cell]) -> list[list[str]]:
    mixed = [each for each in found if each.panel.name in _MIXED]
    over = ("decision", "majority")
    rows = [
        _check_least("the default over the majority of three rounds, every panel", found, over, -0.5),
        _check_least("the default over the majority of three rounds, mixed panels", mixed, over, 1.5),
    ]
    for name, before in (("drafts", "drafts, "), ("three rounds", "")):
        gain = f"{before}log-odds", f"{before}majority"
        rows += [
            _check_least(f"{name}: log-odds over majority, every panel", found, gain, -0.5),
            _check_least(f"{name}: log-odds over majority, mixed panels", mixed, gain, 1.5),
        ]
    rows.append(_check_least("majority: adaptive over three rounds", found, ("adaptive", "majority"), -0.5))
    most = max(found, key=lambda each: _share(each, "calls, adaptive"))
    share = _share(most, "calls, adaptive")
    rows.append(
        ["adaptive: at most 50 % of the calls", _describe_aim(share <= 50), f"{share:.0f} %, {_name(most)}"]
    )
    rows += [
        _check_least(f"majority: {each} over all to all", found, (each, "majority"), -1.0)
        for each in _TOPOLOGIES
    ]
    rows += [
        _check_least(f"one {kind.value}, by {by}", found, (f"{kind.value}, {by}", by), -1.0)
        for kind in _OTHERS
        for by in _DECISIONS
    ]
    return rows


def _agent(route: str) -> Agent:
    return Agent(id=route, name=route, role="", routes=(route,))


def _aims_of_tokens(samples: Sequence[Sample]) -> list[list[str]]:
    tokens = {each.topology: each.tokens for each in samples if each.ends == "all rounds"}
    shares = {each: 100 * tokens[each] / tokens["all to all"] for each in _TOPOLOGIES}
    return [
        [f"{each}: at most 60 % of the input tokens", _describe_aim(share <= 60), f"{share:.1f} %"]
        for each, share in shares.items()
    ]


def _check_least(what: str, found: Sequence[Cell], gain: tuple[str, str], least: float) -> list[str]:
    """Return whether a gain is large enough in every cell, and the cell where it is smallest."""
    worst = min(found, key=lambda each: each.gain(*gain))
    missed = sum(round(each.gain(*gain), 6) < least for each in found)
    verdict = "met" if not missed else f"missed in {missed} of {len(found)}"
    return [f"{what}: at least {least:+g} points", verdict, f"{worst.points(*gain)}, {_name(worst)}"]


def _describe_aim(holds: bool) -> str:
    return "met" if holds else "missed"


def _name(cell: Cell) -> str:
    return f"{cell.panel.name}, {cell.regime.name}"


def _share(cell: Cell, calls: str) -> float:
    return 100 * cell.mean(calls) / cell.mean("calls")


if __name__ == "__main__":
    main(__doc__, run)
