"""Labels as the index keeps them, so that they can be searched: a text each, `name=value`. A name holds no `=`."""

from collections.abc import Iterable, Mapping

__all__ = ["label_texts", "labels_of"]


def label_texts(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return labels as texts, in the order of their names."""
    return tuple(f"{name}={value}" for name, value in sorted(labels.items()))


def labels_of(texts: Iterable[str]) -> dict[str, str]:
    """Return the labels of such texts."""
    return dict(text.split("=", 1) for text in texts)
