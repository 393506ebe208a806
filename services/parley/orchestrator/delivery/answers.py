"""The answers that hooks were told last: several hooks are told of one debate at about the same time."""

from collections import OrderedDict
from typing import Final

from parley.orchestrator.delivery.news import MAX_ANSWER, WriteAnswer
from parley.orchestrator.log.index import DebateIndex
from parley.runtime.errors import not_found

_KEPT: Final = 32


class RememberedAnswers:
    """Writes the answer of a debate once for all hooks. An answer never changes, but its debate may be deleted."""

    def __init__(self, write_answer: WriteAnswer, index: DebateIndex) -> None:
        self._write_answer = write_answer
        self._index = index
        self._written: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def write(self, tenant: str, debate: str) -> str:
        """Return the answer of a debate, or its beginning. Raise what `write_answer` raises, also ParleyError if the debate is gone."""
        key = tenant, debate
        known = self._written.get(key)
        if known is None:
            known = self._written[key] = (await self._write_answer(tenant, debate))[:MAX_ANSWER]
            if len(self._written) > _KEPT:
                self._written.popitem(last=False)
        elif await self._index.get(tenant, debate) is None:
            self._written.pop(key, None)
            raise not_found("debate", debate)
        return known
