"""The moderated format in the `debate:` section."""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from parley.config.formats.format import Format
from parley.v1 import moderated_pb2
from parley.v1.debate_pb2 import DebateSpec

__all__ = ["MODERATED", "ModeratedKeys", "PerspectiveEntry"]

_ONE_LINE: Final = r"^[^\x00-\x1f\x7f]+$"
_MIN_BUDGET: Final = 64
_MAX_BUDGET: Final = 1_000_000
_UNATTENDED: Final = (
    "Nobody can be asked here, since stdin and stderr are not both a terminal: the debate is held without checkpoints. "
    "With --checkpoints it waits at each, and says how to answer."
)


def _budget(given: object) -> object:
    """Return 0 for `unlimited`. Raises PydanticCustomError for what is neither that nor a number of tokens."""
    if given == "unlimited":
        return 0
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if given is not None and (not is_number or 0 != given < _MIN_BUDGET):  # type: ignore[operator]
        raise PydanticCustomError(
            "tokens", f"must be unlimited, 0 for the same, or a number of tokens, at least {_MIN_BUDGET}"
        )
    return given


def _unlike(given: "tuple[PerspectiveEntry, ...]") -> "tuple[PerspectiveEntry, ...]":
    """Return the perspectives. Raises PydanticCustomError where two have one name."""
    names = [each.name.strip().casefold() for each in given]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise PydanticCustomError(
                "perspectives", "two are called {name}; names must differ", {"name": repr(given[number].name)}
            )
    return given


@dataclass(frozen=True, slots=True)
class PerspectiveEntry:
    """A viewpoint from which a debater argues."""

    name: Annotated[
        str,
        Field(
            pattern=_ONE_LINE,
            max_length=64,
            description="Its name, such as `Compliance First`. With the name of a built-in one, it takes its place.",
        ),
    ]
    priorities: Annotated[
        tuple[Annotated[str, Field(pattern=_ONE_LINE, max_length=100)], ...],
        Field(min_length=1, max_length=10, description="What it puts first, such as `audit trails`."),
    ]
    trade_offs: Annotated[
        str, Field(pattern=_ONE_LINE, max_length=300, description="What it will accept for that.")
    ]
    keywords: Annotated[
        tuple[Annotated[str, Field(pattern=_ONE_LINE, max_length=64)], ...],
        Field(
            max_length=50,
            description="Words of a question for which it is of interest. Default: those of its priorities.",
        ),
    ] = ()
    opposes: Annotated[
        tuple[Annotated[str, Field(pattern=_ONE_LINE, max_length=64)], ...],
        Field(
            max_length=32,
            description="Names of perspectives that it pulls against. Default: told from priorities and trade-offs.",
        ),
    ] = ()


@dataclass(frozen=True)
class ModeratedKeys:
    """The moderated format's keys of the `debate:` section."""

    max_rounds: Annotated[
        int | None, Field(ge=1, le=20, description="Rounds of the format `moderated` at most. Default: 5.")
    ] = None
    default_perspectives: Annotated[
        int | None,
        Field(
            ge=2,
            le=4,
            description="Debaters of the format `moderated`. Default: the moderator decides, 2 for a binary choice.",
        ),
    ] = None
    checkpoints: Annotated[
        bool | None,
        Field(
            description="Whether a person is asked after each round of the format `moderated`, and approves its decision. "
            "Default: true; false where `parley debate` has no terminal."
        ),
    ] = None
    token_budget_per_round: Annotated[
        int | None,
        BeforeValidator(_budget),
        WithJsonSchema(
            {
                "anyOf": [
                    {"enum": ["unlimited", 0]},
                    {"type": "integer", "minimum": _MIN_BUDGET, "maximum": _MAX_BUDGET},
                    {"type": "null"},
                ],
                "default": None,
            }
        ),
        Field(
            le=_MAX_BUDGET,
            description="Tokens that a debater of the format `moderated` may write in a round. 0 or `unlimited`: no limit. "
            "Default: 2000.",
        ),
    ] = None
    custom_perspectives: Annotated[
        tuple[PerspectiveEntry, ...],
        AfterValidator(_unlike),
        Field(
            max_length=32,
            description="Perspectives of the format `moderated`, beside those that come along.",
        ),
    ] = ()


def _set_settings(spec: DebateSpec, keys: ModeratedKeys) -> None:
    settings = moderated_pb2.ModeratedSettings(
        perspectives=keys.default_perspectives or 0,
        max_rounds=keys.max_rounds or 0,
        checkpoints=keys.checkpoints,
        token_budget_per_round=keys.token_budget_per_round,
        custom_perspectives=[
            moderated_pb2.Perspective(
                name=each.name,
                priorities=each.priorities,
                trade_offs=each.trade_offs,
                keywords=each.keywords,
                opposes=each.opposes,
            )
            for each in keys.custom_perspectives
        ],
    )
    if settings != moderated_pb2.ModeratedSettings():
        spec.moderated.CopyFrom(settings)


def _set_rounds(spec: DebateSpec, rounds: int) -> None:
    spec.moderated.max_rounds = rounds


def _set_perspectives(spec: DebateSpec, number: str) -> None:
    spec.moderated.perspectives = int(number)


def _set_checkpoints(spec: DebateSpec, switch: str) -> None:
    spec.moderated.checkpoints = switch == "on"


def _go_unattended(spec: DebateSpec) -> str | None:
    """Switch checkpoints off unless somebody asked for them."""
    if spec.moderated.HasField("checkpoints"):
        return None
    spec.moderated.checkpoints = False
    return _UNATTENDED


_KEY_OF_FIELD: Final = {
    "spec.moderated.perspectives": "default_perspectives",
    "spec.moderated.max_rounds": "max_rounds",
    "spec.moderated.checkpoints": "checkpoints",
    "spec.moderated.token_budget_per_round": "token_budget_per_round",
    "spec.moderated.custom_perspectives": "custom_perspectives",
}

MODERATED: Final = Format(
    name="moderated",
    keys=ModeratedKeys,
    renamed={},
    renamed_inside={},
    without_section="5 rounds at most, as always",
    set_settings=_set_settings,
    set_rounds=_set_rounds,
    options={
        "perspectives": _set_perspectives,
        "max-rounds": lambda spec, number: _set_rounds(spec, int(number)),
        "checkpoints": _set_checkpoints,
    },
    key_of_field=_KEY_OF_FIELD,
    go_unattended=_go_unattended,
)
"""A moderator assigns perspectives, debaters argue and rebut from them, a person is asked, and the moderator decides."""
