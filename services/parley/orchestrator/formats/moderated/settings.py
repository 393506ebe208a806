"""The settings of moderated debates: what they are by default, and what is refused."""

from collections.abc import Sequence
from typing import Final

from google.protobuf.message import Message

from parley.orchestrator.engine.format import Settings
from parley.orchestrator.formats.moderated.perspectives import MIN_DEBATERS, catalogue, opposing_pairs
from parley.runtime.contract_settings import with_defaults
from parley.runtime.validation import Violations
from parley.v1.moderated_pb2 import ModeratedSettings, Perspective

_PATH: Final = "spec.moderated"


def _check_rules(violations: Violations, settings: Message, _agents: int) -> None:
    assert isinstance(settings, ModeratedSettings)
    _check_names(violations, settings.custom_perspectives)
    _check_opposition(violations, settings)


def _check_names(violations: Violations, custom: Sequence[Perspective]) -> None:
    seen: set[str] = set()
    for place, each in enumerate(custom):
        at = f"{_PATH}.custom_perspectives[{place}]"
        violations.check(
            that=any(map(str.isalnum, each.name)), field=f"{at}.name", otherwise="needs a letter or a digit"
        )
        violations.check_new(f"{at}.name", each.name.strip().casefold(), seen)


def _check_opposition(violations: Violations, settings: ModeratedSettings) -> None:
    """Note names that no perspective has, and a catalogue that no debate can be made of."""
    path, known = f"{_PATH}.custom_perspectives", catalogue(settings.custom_perspectives)
    names = {each.name.casefold() for each in known}
    for place, each in enumerate(settings.custom_perspectives):
        for number, name in enumerate(each.opposes):
            violations.check(
                that=name.strip().casefold() in names - {each.name.strip().casefold()},
                field=f"{path}[{place}].opposes[{number}]",
                otherwise=f"{name!r} is no other perspective; known: {', '.join(each.name for each in known)}",
            )
    pairs = opposing_pairs(known)
    violations.check(
        that=bool(pairs),
        field=path,
        otherwise="all perspectives pull the same way, so that there is nothing to debate; say in `trade_offs`, or"
        " `opposes`, what one of them stands against",
    )
    if pairs and settings.custom_perspectives and settings.perspectives == MIN_DEBATERS:
        violations.check(
            that=any(each.is_custom for pair in pairs for each in pair),
            field=path,
            otherwise="none of them opposes another perspective, as one of two debaters has to; say in `trade_offs`, or"
            " `opposes`, what one stands against, or ask for 3 debaters",
        )


SETTINGS: Final = Settings(
    name="moderated", defaults=with_defaults(ModeratedSettings()), check_rules=_check_rules
)
