"""Where the keys of a configuration file stand."""

from collections.abc import Mapping

from msgspec import Struct, field


class Places(Struct, frozen=True):
    """Where the keys of a file stand.

    Attributes:
        lines: By path, in snake_case.
        spelled: Paths as the file spells them, if that is another way.
    """

    name: str
    lines: Mapping[str, int]
    spelled: Mapping[str, str] = field(default_factory=dict)

    def line(self, path: str) -> int:
        """Return the line of a key, or of the nearest key around it if it is not written itself."""
        near = path
        while near and near not in self.lines:
            near = near[: max(near.rfind("."), near.rfind("["), 0)]
        return self.lines.get(near, 1)

    def _as_written(self, path: str) -> str:
        near = path
        while near and near not in self.spelled:
            near = near[: max(near.rfind("."), near.rfind("["), 0)]
        return self.spelled.get(near, near) + path[len(near) :]

    def is_written(self, path: str) -> bool:
        """Return whether the file has the key."""
        return path in self.lines

    def of(self, path: str) -> str:
        """Return `debate.yaml:12: agents[1].role`."""
        return f"{self.name}:{self.line(path)}: {self._as_written(path)}"
