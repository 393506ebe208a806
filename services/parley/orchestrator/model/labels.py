"""Labels, by which clients find their debates. The index stores each as a text, `name=value`; a name has no `=`."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from parley.runtime.validation import CONTROL_CHARACTER, Violations

_MAX_LABELS: Final = 16
_MAX_VALUE: Final = 63
_NAME: Final = re.compile(r"[a-z][a-z0-9._/-]{0,62}")


def check_labels(violations: Violations, field: str, labels: Mapping[str, str]) -> None:
    """Note too many labels, and each name or value that has another form than in the contract."""
    if len(labels) > _MAX_LABELS:
        violations.add(field, f"has {len(labels)} labels, at most {_MAX_LABELS} are allowed")
        return
    for name, value in sorted(labels.items()):
        violations.check(
            that=bool(_NAME.fullmatch(name)),
            field=field,
            otherwise=f"the name {name[:80]!r} must match {_NAME.pattern}",
        )
        violations.check(
            that=len(value) <= _MAX_VALUE and not CONTROL_CHARACTER.search(value),
            field=field,
            otherwise=f"the value of {name[:80]!r} must be one line of at most {_MAX_VALUE} characters",
        )


def label_texts(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return labels as texts, in the order of their names."""
    return tuple(f"{name}={value}" for name, value in sorted(labels.items()))


def labels_of(texts: Iterable[str]) -> dict[str, str]:
    """Return the labels of such texts."""
    return dict(text.split("=", 1) for text in texts)
