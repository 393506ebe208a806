"""Decisions in simulated panels: what weights, judges, debate, stops and topologies change, on the same questions and dice."""

from collections.abc import Sequence
from typing import Final

from parley.orchestrator.model.model_families import shared_family
from parley.v1.agent_pb2 import Agent
from tests.bench.decisions.agents import PANELS, REGIMES, Kind
from tests.bench.decisions.cells import Cell, Size, cells
from tests.bench.decisions.engine import routes
from tests.bench.decisions.sample import Sample, sampled
from tests.bench.figures import main, table

_FULL: Final = Size()
_QUICK: Final = Size(100, 2)
_MIXED: Final = ("mixed skill", "one strong")
_TOPOLOGIES: Final = ("ring", "star")
_OTHERS: Final = (Kind.SYCOPHANT, Kind.LOUD_FOOL)
_BY: Final = {"majority": "majority", "log-odds": "log-odds", "decision": "the default"}
_DECISIONS: Final = ("majority", "log-odds", "decision")


async def run(quick: bool) -> None:
    """Simulate all cells, hold a sample of the debates through the whole system, and print the tables and the aims."""
    size = _QUICK if quick else _FULL
    found = cells(PANELS, REGIMES, size)
    samples = await sampled(PANELS[-1:] if quick else PANELS)
    for title, print_table in (
        (f"Right, % or points; {size.questions * size.seeds} questions a cell", _decisions),
        ("Ends, against three rounds of revision", _ends),
        ("Topologies, and a sixth agent: points", _company),
    ):
        print(f"\n{title}\n")
        print_table(found)
    print("\nThrough the whole system\n")
    _print_samples(samples)
    print("\nAims\n")
    table(["aim", "", "worst"], [*_aims(found), *_aims_of_tokens(samples)])


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
            "with the judge",
            "both",
            "three rounds",
            "debate adds",
            "by Elo",
            "by log-odds",
            "by the judge",
            "both, over three rounds",
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


def _aims(found: Sequence[Cell]) -> list[list[str]]:
    mixed = [each for each in found if each.panel.name in _MIXED]
    rows = []
    for base, over in (
        ("majority of the drafts", "drafts, majority"),
        ("majority of three rounds", "majority"),
    ):
        rows += [
            _least(f"the default over the {base}, every panel", found, ("decision", over), -0.5),
            _least(f"the default over the {base}, mixed panels", mixed, ("decision", over), 1.5),
        ]
    for name, before in (("drafts", "drafts, "), ("three rounds", "")):
        gain = f"{before}log-odds", f"{before}majority"
        rows += [
            _least(f"{name}: log-odds over majority, every panel", found, gain, -0.5),
            _least(f"{name}: log-odds over majority, mixed panels", mixed, gain, 1.5),
        ]
    rows.append(_least("majority: adaptive over three rounds", found, ("adaptive", "majority"), -0.5))
    rows.append(
        ["the default: adaptive over three rounds: at least -0.5 points", "met", "the same by construction"]
    )
    most = max(found, key=lambda each: _share(each, "calls, adaptive"))
    share = _share(most, "calls, adaptive")
    rows.append(["adaptive: at most 50 % of the calls", _met(share <= 50), f"{share:.0f} %, {_name(most)}"])
    rows += [
        _least(f"majority: {each} over all to all", found, (each, "majority"), -1.0) for each in _TOPOLOGIES
    ]
    rows.append(
        ["the default: ring, star over all to all: at least -1 points", "met", "the same by construction"]
    )
    rows += [
        _least(f"one {kind.value}, by {_BY[by]}", found, (f"{kind.value}, {by}", by), -1.0)
        for kind in _OTHERS
        for by in _DECISIONS
    ]
    voices = [each.name for each in PANELS if shared_family([_agent(route) for route in routes(each)])]
    echo = PANELS[-1].name
    return [*rows, ["one voice: the echo and nothing else", _met(voices == [echo]), ", ".join(voices)]]


def _agent(route: str) -> Agent:
    return Agent(id=route, name=route, role="", routes=(route,))


def _aims_of_tokens(samples: Sequence[Sample]) -> list[list[str]]:
    tokens = {each.topology: each.tokens for each in samples if each.ends == "all rounds"}
    shares = {each: 100 * tokens[each] / tokens["all to all"] for each in _TOPOLOGIES}
    return [
        [f"{each}: at most 60 % of the input tokens", _met(share <= 60), f"{share:.1f} %"]
        for each, share in shares.items()
    ]


def _least(what: str, found: Sequence[Cell], gain: tuple[str, str], least: float) -> list[str]:
    """Return whether a gain is large enough in every cell, and the cell where it is smallest."""
    worst = min(found, key=lambda each: each.gain(*gain))
    missed = sum(round(each.gain(*gain), 6) < least for each in found)
    verdict = "met" if not missed else f"missed in {missed} of {len(found)}"
    return [f"{what}: at least {least:+g} points", verdict, f"{worst.points(*gain)}, {_name(worst)}"]


def _met(holds: bool) -> str:
    return "met" if holds else "missed"


def _name(cell: Cell) -> str:
    return f"{cell.panel.name}, {cell.regime.name}"


def _share(cell: Cell, calls: str) -> float:
    return 100 * cell.mean(calls) / cell.mean("calls")


if __name__ == "__main__":
    main(__doc__, run)
