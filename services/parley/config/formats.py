"""What the configuration knows of a format. The keys of its settings follow from the contract.

The other modules of the configuration, and the command, know formats through this registry alone.
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

from parley.config.contract_keys import Key, keys_of, set_word
from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.debate_pb2 import DebateSpec
from parley.v1.moderated_pb2 import ModeratedSettings
from parley.v1.panel_pb2 import EFFORT_QUICK, PanelSettings

FORMAT_SETTINGS: Final = DebateSpec.DESCRIPTOR.oneofs_by_name["format_settings"]
_UNATTENDED: Final = (
    "No person can be asked here, since stdin and stderr are not both a terminal: the debate runs without checkpoints. "
    "With --checkpoints it waits at each, and says how to answer."
)


def _change_nothing(_spec: DebateSpec) -> str | None:
    return None


def _keep_the_rest(_spec: DebateSpec, _word: str) -> None:
    pass


CONCURRENCY_KEYS: Final[Mapping[str, str]] = {
    "proposals": "max_concurrent_proposals",
    "critiques": "max_concurrent_critiques",
    "refinements": "max_concurrent_revisions",
}
"""The keys that bound calls at a time, by the label of the calls."""


def _format_keys(name: str) -> list[tuple[str, str]]:
    """Return the keys of a format's settings as they stand below `debate`, each with the name of its field."""
    of_format = [each for each in keys_of(DebateSpec.DESCRIPTOR) if each.path[0].name == name]
    if len(of_format) == 1 and of_format[0].field.name == name:
        return [(f"{name}.{each.name}", each.field.name) for each in keys_of(of_format[0].field.message_type)]
    return [(each.name, each.field.name) for each in of_format]


class Format(Struct, frozen=True, kw_only=True):
    """A format in the `debate:` section.

    Attributes:
        name: What it is called, and the field of its settings.
        settings: Its keys.
        rounds: The field of its settings that `--rounds` sets.
        without_section: What holds if there is no section.
        renamed: Keys of the section that mean what another key means here.
        has_concurrency: Whether the section bounds its calls at a time.
        instead: What does here what a key of another format does there, by that key. Each format's key for rounds is among them
            without being named.
        clear: Clears what the file says, and an option contradicts, before that is set; by the option's name, given its word.
        go_unattended: Sets what holds if no person can be asked and nothing else was said; returns a notice of that, or None if
            nothing changes.
    """

    name: str
    settings: tuple[Key, ...]
    rounds: str
    without_section: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    has_concurrency: bool = False
    instead: Mapping[str, str] = field(default_factory=dict)
    clear: Mapping[str, Callable[[DebateSpec, str], None]] = field(default_factory=dict)
    go_unattended: Callable[[DebateSpec], str | None] = _change_nothing

    @property
    def options(self) -> Mapping[str, Key]:
        """The settings that options of `parley debate` set, by the option."""
        return {each.setting.option: each for each in self.settings if each.setting.option}

    @property
    def max_rounds(self) -> int:
        """How many rounds it can have at most."""
        return int(next(each.setting.max for each in self.settings if each.field.name == self.rounds))

    @property
    def rounds_key(self) -> str:
        """The key below `debate` that says how many rounds there are at most."""
        return next(key for key, field_name in _format_keys(self.name) if field_name == self.rounds)

    def find_unused_keys(self, is_written: Callable[[str], bool]) -> list[tuple[str, str]]:
        """Return the keys below `debate` that are written and that this format does not use, each with what to do about it."""
        others = [
            (key, other)
            for other in FORMATS
            if other is not self
            for key in dict.fromkeys(key.partition(".")[0] for key, _ in _format_keys(other.name))
        ]
        unused = [(key, self._advise(key, other)) for key, other in others if is_written(key)]
        if not self.has_concurrency:
            unused += [(key, "leave it out") for key in CONCURRENCY_KEYS.values() if is_written(key)]
        return unused

    def _advise(self, key: str, other: "Format") -> str:
        """Return what to do about a key of another format."""
        if key == other.rounds_key:
            return f"use {self.rounds_key}"
        return self.instead.get(key) or f"leave it out, or choose the format {other.name}, whose key it is"

    def set_option(self, spec: DebateSpec, option: str, word: str) -> None:
        """Set what an option of `parley debate` sets."""
        self.clear.get(option, _keep_the_rest)(spec, word)
        set_word(getattr(spec, self.name), self.options[option], word)

    def set_rounds(self, spec: DebateSpec, rounds: int) -> None:
        """Set the number of rounds, whatever was set before."""
        self.clear.get("rounds", _keep_the_rest)(spec, str(rounds))
        setattr(getattr(spec, self.name), self.rounds, rounds)


def _clear_rounds(spec: DebateSpec, effort: str) -> None:
    """Clear what the section says of the rounds' end, and of their number where there are to be none."""
    spec.panel.ClearField("termination")
    if effort == "quick":
        spec.panel.ClearField("rounds")


def _clear_quick(spec: DebateSpec, _rounds: str) -> None:
    """Clear the effort of the section that allows no rounds."""
    if spec.panel.effort == EFFORT_QUICK:
        spec.panel.ClearField("effort")


def _clear_topologies(spec: DebateSpec, _topology: str) -> None:
    """Clear all that the section says of topologies: the option is for all rounds."""
    spec.arena.ClearField("topology")
    spec.arena.ClearField("topologies")


def _skip_checkpoints(spec: DebateSpec) -> str | None:
    """Switch checkpoints off unless they were asked for."""
    if spec.moderated.HasField("checkpoints"):
        return None
    spec.moderated.checkpoints = False
    return _UNATTENDED


FORMATS: Final[tuple[Format, ...]] = (
    Format(
        name="panel",
        settings=keys_of(PanelSettings.DESCRIPTOR),
        rounds="rounds",
        without_section="rounds as long as something is disputed, 3 at most",
        renamed={
            "termination_condition": "termination",
            "clarifications_max_iterations": "clarifications_max_times",
        },
        has_concurrency=True,
        clear={"effort": _clear_rounds, "rounds": _clear_quick},
    ),
    Format(
        name="arena",
        settings=keys_of(ArenaSettings.DESCRIPTOR),
        rounds="revision_rounds",
        without_section="3 rounds of revision, as always",
        has_concurrency=True,
        instead={
            "synthesis_method": "its judge writes the answer from the vote; arena.consensus and arena.ballots say what decides",
            "termination": "use arena.convergence, arena.stable_positions, arena.judge_termination and the other ends below arena",
        },
        clear={"topology": _clear_topologies},
    ),
    Format(
        name="moderated",
        settings=keys_of(ModeratedSettings.DESCRIPTOR),
        rounds="max_rounds",
        without_section="5 rounds at most, as always",
        instead={
            "synthesis_method": "leave it out: the moderator, who is the file's judge, writes the decision",
            "termination": "leave it out: the moderator ends the rounds, max_rounds at the latest",
        },
        go_unattended=_skip_checkpoints,
    ),
)
"""The formats that have keys in the section; the first is the default."""
DEFAULT: Final = FORMATS[0]


def find_format(name: str | None) -> Format | None:
    """Return the format of `NAME` or `NAME@VERSION`, by default the first. Return None for one that has no keys here."""
    if not name:
        return DEFAULT
    bare = name.partition("@")[0]
    return next((each for each in FORMATS if each.name == bare), None)
