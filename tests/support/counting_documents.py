"""Documents of which what is read is counted."""

from collections.abc import Sequence
from typing import Any

from parley.storage.ports import Document, Documents


class CountingDocuments:
    """Documents that count what is found in them, as `read`."""

    def __init__(self, inner: Documents) -> None:
        self._inner = inner
        self.read = 0

    async def find(self, *given: Any, **named: Any) -> Sequence[Document]:
        found = await self._inner.find(*given, **named)
        self.read += len(found)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
