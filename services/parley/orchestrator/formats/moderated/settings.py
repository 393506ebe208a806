"""The settings of moderated debates: what they are by default, and what is refused."""

from collections.abc import Sequence
from typing import Final

from google.protobuf.message import Message

from parley.orchestrator.engine.format import Settings
from parley.orchestrator.formats.moderated.perspectives import catalogue, opposing_pairs
from parley.runtime.validation import CONTROL_CHARACTER, Violations
from parley.v1.moderated_pb2 import ModeratedSettings, Perspective

__all__ = ["MAX_DEBATERS", "MIN_DEBATERS", "SETTINGS"]

MIN_DEBATERS: Final = 2
MAX_DEBATERS: Final = 4
_MAX_ROUNDS: Final = 20
_MIN_TOKENS: Final = 64
_MAX_TOKENS: Final = 1_000_000
_MAX_CUSTOM: Final = 32
_PATH: Final = "spec.moderated"


def _check(violations: Violations, settings: Message, _agents: int) -> None:
    assert isinstance(settings, ModeratedSettings)
    count, tokens = settings.perspectives, settings.token_budget_per_round
    violations.check(
        that=count == 0 or MIN_DEBATERS <= count <= MAX_DEBATERS,
        field=f"{_PATH}.perspectives",
        otherwise=f"is {count}, must be {MIN_DEBATERS} to {MAX_DEBATERS}, or 0 to let the moderator decide",
    )
    violations.check_setting(f"{_PATH}.max_rounds", settings.max_rounds, _MAX_ROUNDS)
    violations.check(
        that=tokens == 0 or _MIN_TOKENS <= tokens <= _MAX_TOKENS,
        field=f"{_PATH}.token_budget_per_round",
        otherwise=f"is {tokens}, must be {_MIN_TOKENS} to {_MAX_TOKENS}, or 0 for no limit",
    )
    _check_custom(violations, settings.custom_perspectives)
    _check_opposition(violations, settings)


def _check_custom(violations: Violations, custom: Sequence[Perspective]) -> None:
    path = f"{_PATH}.custom_perspectives"
    violations.check(
        that=len(custom) <= _MAX_CUSTOM, field=path, otherwise=f"at most {_MAX_CUSTOM} are allowed"
    )
    seen: set[str] = set()
    for place, each in enumerate(custom):
        at = f"{path}[{place}]"
        _check_line(violations, f"{at}.name", each.name, 64)
        violations.check(
            that=any(map(str.isalnum, each.name)), field=f"{at}.name", otherwise="needs a letter or a digit"
        )
        violations.check_new(f"{at}.name", each.name.strip().casefold(), seen)
        _check_line(violations, f"{at}.trade_offs", each.trade_offs, 300)
        violations.check(
            that=1 <= len(each.priorities) <= 10,
            field=f"{at}.priorities",
            otherwise=f"has {len(each.priorities)}, must have 1 to 10",
        )
        for name, most, characters in (("priorities", 10, 100), ("keywords", 50, 64), ("opposes", 32, 64)):
            lines = getattr(each, name)
            violations.check(
                that=len(lines) <= most, field=f"{at}.{name}", otherwise=f"at most {most} are allowed"
            )
            for number, line in enumerate(lines):
                _check_line(violations, f"{at}.{name}[{number}]", line, characters)


def _check_line(violations: Violations, field: str, text: str, most: int) -> None:
    violations.check_text(field, text, max_characters=most)
    violations.check(that=not CONTROL_CHARACTER.search(text), field=field, otherwise="must be one line")


def _check_opposition(violations: Violations, settings: ModeratedSettings) -> None:
    """Note names that nobody has, and a catalogue that no debate can be made of."""
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
    name="moderated",
    defaults=ModeratedSettings(max_rounds=5, checkpoints=True, token_budget_per_round=2000),
    check=_check,
)
