"""What the configuration knows of a format. The keys of its settings follow from the contract.

The other modules of the configuration, and the command, know formats through this registry alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from parley.config.contract_keys import Key, keys_of, set_word
from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.debate_pb2 import DebateSpec
from parley.v1.moderated_pb2 import ModeratedSettings
from parley.v1.panel_pb2 import PanelSettings

FORMAT_SETTINGS: Final = DebateSpec.DESCRIPTOR.oneofs_by_name["format_settings"]
_UNATTENDED: Final = (
    "No person can be asked here, since stdin and stderr are not both a terminal: the debate runs without checkpoints. "
    "With --checkpoints it waits at each, and says how to answer."
)


def _change_nothing(_spec: DebateSpec) -> str | None:
    return None


def _keep_the_rest(_spec: DebateSpec) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format in the `debate:` section.

    Attributes:
        name: What it is called, and the field of its settings.
        settings: Its keys.
        rounds: The field of its settings that `--rounds` sets.
        without_section: What holds if there is no section.
        renamed: Keys of the section that mean what another key means here.
        has_concurrency: Whether the section bounds its calls at a time.
        clear: What an option of the command line clears before it sets its own field, by the option's name.
        go_unattended: Sets what holds if no person can be asked and nothing else was said; returns a notice of that, or None if
            nothing changes.
    """

    name: str
    settings: tuple[Key, ...]
    rounds: str
    without_section: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    has_concurrency: bool = False
    clear: Mapping[str, Callable[[DebateSpec], None]] = field(default_factory=dict)
    go_unattended: Callable[[DebateSpec], str | None] = _change_nothing

    @property
    def options(self) -> Mapping[str, Key]:
        """The settings that options of `parley debate` set, by the option."""
        return {each.setting.option: each for each in self.settings if each.setting.option}

    def set_option(self, spec: DebateSpec, option: str, word: str) -> None:
        """Set what an option of `parley debate` sets."""
        self.clear.get(option, _keep_the_rest)(spec)
        set_word(getattr(spec, self.name), self.options[option], word)

    def set_rounds(self, spec: DebateSpec, rounds: int) -> None:
        """Set the number of rounds, whatever was set before."""
        setattr(getattr(spec, self.name), self.rounds, rounds)


def _clear_topologies(spec: DebateSpec) -> None:
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
        without_section="3 rounds, as always",
        renamed={
            "termination_condition": "termination",
            "clarifications_max_iterations": "clarifications_max_times",
        },
        has_concurrency=True,
    ),
    Format(
        name="arena",
        settings=keys_of(ArenaSettings.DESCRIPTOR),
        rounds="revision_rounds",
        without_section="3 rounds of revision, as always",
        has_concurrency=True,
        clear={"topology": _clear_topologies},
    ),
    Format(
        name="moderated",
        settings=keys_of(ModeratedSettings.DESCRIPTOR),
        rounds="max_rounds",
        without_section="5 rounds at most, as always",
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
