"""Which documents are read."""

from collections.abc import Sequence
from typing import Any

import pytest

from parley.storage.ports import Document, Documents


def note_reads(documents: Documents, monkeypatch: pytest.MonkeyPatch, field: str) -> list[str]:
    """Return a list that the key of each document is added to which is found with this field."""
    find, read = documents.find, list[str]()

    async def note(*args: Any, **kwargs: Any) -> Sequence[Document]:
        found = await find(*args, **kwargs)
        read.extend(each.key for each in found if field in each.fields)
        return found

    monkeypatch.setattr(documents, "find", note)
    return read
