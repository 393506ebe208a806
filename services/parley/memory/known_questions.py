"""What stands are about: of a debate that was looked at before it is not read again."""

from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from typing import Final

from parley.memory.latest_stands import LatestStand
from parley.memory.stands import HEAD_FIELDS, POSITIONS, Stand, StandHead, read_heads
from parley.runtime.large_texts import in_thread_if_large
from parley.storage.ports import Documents
from parley.storage.scan import find_by_keys

_MAX_KNOWN: Final = 2_000
"""Debates whose question is known, two kilobytes each; those that were not asked for for longest go."""
_CHARACTERS: Final = 2_000
"""Of a head, about as many as its vector has."""


class KnownQuestions:
    """What those stands of all tenants are about that were last asked for."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._heads: OrderedDict[str, StandHead] = OrderedDict()

    async def load(self, found: Iterable[LatestStand]) -> dict[str, StandHead]:
        """Return the heads of stands by the field `about` of these, without those that cannot be read."""
        keys = {each.about: each.key for each in found}
        heads = {about: self._heads[about] for about in keys if about in self._heads}
        for about in heads:
            self._heads.move_to_end(about)
        if unknown := {key: about for about, key in keys.items() if about not in heads}:
            documents = await find_by_keys(self._documents, POSITIONS, unknown, fields=HEAD_FIELDS)
            read = await in_thread_if_large(len(documents) * _CHARACTERS, partial(read_heads, documents))
            for key, head in read.items():
                heads[unknown[key]] = head
                if unknown[key] != key:  # else nothing tells if it is written anew
                    self._heads[unknown[key]] = head
        while len(self._heads) > _MAX_KNOWN:
            self._heads.popitem(last=False)
        return heads

    def put(self, stand: Stand) -> None:
        """Keep what a debate is about as it is recorded."""
        self._heads[stand.about] = StandHead(
            debate=stand.debate,
            concluded=stand.concluded,
            related=stand.related,
            vector=stand.vector,
            model=stand.model,
        )
