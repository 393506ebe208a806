"""What is found while a file is made a configuration: what is wrong with it, and what a person is told of it."""

from collections.abc import Iterable

from parley.config.errors import ConfigError
from parley.config.reading import Places

__all__ = ["Findings"]


class Findings:
    """What was found so far.

    Attributes:
        places: Where the keys of the file stand.
        notices: What was passed over or filled in, one line each.
        warnings: What could not be used and was replaced, one line each.
        reaching: Where the file names an endpoint, or a file outside its folder, one line each.
        gaps: The notices that say what holds where a section is not there, by section.
    """

    def __init__(self, places: Places, notices: Iterable[str] = (), *, tells_gaps: bool = True) -> None:
        """Begin with the `notices` of reading the file. Of a file of evaluators alone, no gaps are told."""
        self.places = places
        self.notices = list(notices)
        self.warnings: list[str] = []
        self.reaching: list[str] = []
        self.gaps: dict[str, str] = {}
        self._tells_gaps = tells_gaps
        self._problems: list[tuple[int, str]] = []

    def problem(self, path: str, text: str) -> None:
        """Note what is wrong with a key."""
        self._problems.append((self.places.line(path), f"{self.places.of(path)}: {text}"))

    def problem_elsewhere(self, text: str) -> None:
        """Note what is wrong beside the file."""
        self._problems.append((0, text))

    def notice(self, path: str, text: str) -> None:
        """Tell of a key that was passed over."""
        self.notices.append(f"{self.places.of(path)}: {text}")

    def warning(self, path: str, text: str) -> None:
        """Tell of a key whose value was replaced."""
        self.warnings.append(f"{self.places.of(path)}: {text}")

    def reaches_out(self, path: str, whither: str = "") -> None:
        """Note a key that names an endpoint, or the file outside the folder at `whither`."""
        self.reaching.append(f"{self.places.of(path)}: {whither}" if whither else self.places.of(path))

    def gap(self, section: str, text: str) -> None:
        """Tell what holds where a section is not there."""
        if not self._tells_gaps:
            return
        self.gaps[section] = f"{self.places.name}: no {section} section: {text}"
        self.notices.append(self.gaps[section])

    def refuse(self) -> None:
        """Raise ConfigError with all that is wrong, in the order of the file; nothing where nothing is."""
        if self._problems:
            raise ConfigError(*(text for _, text in sorted(self._problems)))
