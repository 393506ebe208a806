"""Problems and notices that are found while a configuration is built of a file."""

from collections.abc import Iterable

from parley.config.errors import ConfigError
from parley.config.places import Places


class Findings:
    """What was found so far.

    Attributes:
        places: Where the keys of the file stand.
        notices: What was passed over or filled in, one line each.
        warnings: What could not be used and was replaced, one line each.
        gaps: The notices that say what holds if a section is missing, by section.
    """

    def __init__(self, places: Places, notices: Iterable[str] = (), *, has_gaps: bool = True) -> None:
        """Begin with the `notices` of reading the file. A file of evaluators alone has no gaps."""
        self.places = places
        self.notices = list(notices)
        self.warnings: list[str] = []
        self._outside: list[str] = []
        self._destinations: list[str] = []
        self.gaps: dict[str, str] = {}
        self._has_gaps = has_gaps
        self._problems: list[tuple[int, str]] = []

    def add_problem(self, path: str, text: str) -> None:
        """Note what is wrong with a key."""
        self._problems.append((self.places.line(path), f"{self.places.of(path)}: {text}"))

    def add_problem_elsewhere(self, text: str) -> None:
        """Note a problem outside the file."""
        self._problems.append((0, text))

    def add_notice(self, path: str, text: str) -> None:
        """Note a key that was ignored."""
        self.notices.append(f"{self.places.of(path)}: {text}")

    def add_warning(self, path: str, text: str) -> None:
        """Note a key whose value was replaced."""
        self.warnings.append(f"{self.places.of(path)}: {text}")

    def add_outside(self, path: str, file: str) -> None:
        """Note a key that names a file outside the folder."""
        self._outside.append(f"{self.places.of(path)}: {file}")

    def add_destination(self, path: str, target: str) -> None:
        """Note a key that decides where keys and questions go: to the `target`, which may be empty."""
        self._destinations.append(f"{self.places.of(path)}: {target}" if target else self.places.of(path))

    @property
    def reaching(self) -> tuple[str, ...]:
        """What needs trust: files outside the folder first, since a person is shown the first lines of many."""
        return (*self._outside, *self._destinations)

    def add_gap(self, section: str, text: str) -> None:
        """Tell what holds if a section is missing."""
        if not self._has_gaps:
            return
        self.gaps[section] = f"{self.places.name}: no {section} section: {text}"
        self.notices.append(self.gaps[section])

    def refuse(self) -> None:
        """Raise ConfigError with all problems, in the order of the file, if there are any."""
        if self._problems:
            raise ConfigError(*(text for _, text in sorted(self._problems)))
