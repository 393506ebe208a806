"""The context documents of a debate, and what was found for it: held once in this process, named in prompts by their digests, and cited by their numbers."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from urllib.parse import urlsplit

from parley.orchestrator.model.tasks import document_part
from parley.orchestrator.model.times import timestamp
from parley.runtime.held_texts import HeldText, hold_text
from parley.runtime.large_texts import CHARACTERS_PER_TEXT
from parley.v1.event_pb2 import SourcesListed
from parley.v1.gateway_pb2 import PromptPart
from parley.v1.source_pb2 import SOURCE_KIND_DOCUMENT, Findings, NearestPassages, Passage, Source


class Documents:
    """The documents of a debate, which are its sources S1, S2, … in their order.

    Attributes:
        texts: The text of each document, by its path.
        digests: What stands for the text of each document, 32 hex digits, by its path.
        size: What it takes to go through them, in characters.
        sources: What they are, by number; hash and time are only in those that were found.
    """

    def __init__(
        self,
        texts: Iterable[tuple[str, HeldText]],
        found: Sequence[Source] = (),
        passages: Mapping[str, Sequence[Passage]] = MappingProxyType({}),
    ) -> None:
        """Hold documents by their paths; the last of them are what was `found`. `passages` are those that matter most, by path."""
        self.texts = dict(texts)
        given = list(self.texts)[: len(self.texts) - len(found)]
        self._found = tuple(found)
        self._passages = passages
        self.sources = (
            *(
                Source(number=number, kind=SOURCE_KIND_DOCUMENT, path=path)
                for number, path in enumerate(given, start=1)
            ),
            *self._found,
        )
        self.digests = {path: held.digest for path, held in self.texts.items()}
        self.size = sum(len(held.utf8) + CHARACTERS_PER_TEXT for held in self.texts.values())

    def parts(self, give: int, cited: Collection[int] = ()) -> tuple[PromptPart, ...]:
        """Return a part of a prompt for each document; if some are `cited`, by their numbers, the others are shortened before these."""
        return tuple(
            document_part(
                path,
                held,
                number,
                give + bool(cited and number not in cited),
                self._passages.get(path, ()),
            )
            for number, (path, held) in enumerate(self.texts.items(), start=1)
        )

    def list_sources(self, read_at: datetime) -> SourcesListed:
        """Return the documents as sources. It takes as long as to hash them."""
        return SourcesListed(
            sources=[
                Source(
                    number=number,
                    kind=SOURCE_KIND_DOCUMENT,
                    path=path,
                    sha256=hashlib.sha256(held.utf8).hexdigest(),
                    read_at=timestamp(read_at),
                )
                for number, (path, held) in enumerate(self.texts.items(), start=1)
            ]
        )

    def with_findings(self, findings: Findings) -> "tuple[Documents, SourcesListed]":
        """Return these documents and what was found, as the sources that follow them, and what is recorded of those."""
        texts, listed = dict(self.texts), SourcesListed()
        for each in findings.findings:
            number = len(texts) + 1
            source = Source()
            source.CopyFrom(each.source)
            source.number = number
            listed.sources.append(source)
            texts[_name_of(source, texts)] = hold_text(
                f"{source.title}\n{source.url or source.tool}\n\n{each.text}".strip()
            )
        return Documents(texts.items(), [*self._found, *listed.sources], self._passages), listed

    def with_passages(self, nearest: NearestPassages) -> "Documents":
        """Return these documents, of which prompts that are too long keep the nearest passages."""
        passages = {each.path: tuple(each.passages) for each in nearest.documents}
        return Documents(self.texts.items(), self._found, passages)


def _name_of(source: Source, taken: Iterable[str]) -> str:
    """Return a path for what was found, which no document has."""
    name = f"tools/{source.number}-{source.tool}" if source.tool else _name_of_page(source)
    while name in taken:
        name = f"{name}-"
    return name


def _name_of_page(source: Source) -> str:
    host = urlsplit(source.url).hostname or "source"
    return f"web/{source.number}-{host[:100]}"
