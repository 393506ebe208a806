"""Large documents in parts: the passages that are nearest to the question are what prompts keep of a document that is too long for them."""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.errors import StepError
from parley.orchestrator.model.passages import EMBEDDED, LARGE_BYTES, choose_size, cut_passages, rank_vectors
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.peers.services import truncate_text
from parley.runtime.large_texts import in_thread_per_tenant
from parley.runtime.passages import MAX_PASSAGES, shorten_to_passages
from parley.v1.event_pb2 import StepFailed
from parley.v1.source_pb2 import (
    DocumentPassages,
    Findings,
    LargeDocument,
    NearestPassages,
    Passage,
    PassagesRequest,
)

PASSAGES = Activity(
    "passages", "finding the passages of large documents", title="passages of large documents"
)
_KEY = "passages"


async def find_passages(debate: Debate) -> None:
    """Find the passages of large documents that are nearest to the question, once, for prompts that follow to keep if they are too long.

    They are compared by meaning, by the convergence service. If that does not answer, it is a warning, and prompts keep the beginnings and ends
    of large documents. Call it while no prompt is made, so that a replay makes the same ones.
    """
    large = {path: held for path, held in debate.documents.texts.items() if len(held.utf8) > LARGE_BYTES}
    if not large:
        return
    request = PassagesRequest(
        question=debate.spec.question,
        documents=[LargeDocument(path=path, digest=held.digest) for path, held in large.items()],
    )
    found = await debate.call_service(
        _KEY,
        PASSAGES.create_work(),
        request,
        lambda: _find(debate, lambda: {path: held.text for path, held in large.items()}),
    )
    if isinstance(found, StepFailed):
        debate.warn(
            _KEY,
            f"prompts that are too long keep the beginning and the end of large documents: {found.message}",
        )
    else:
        debate.use_passages(found)


async def shorten_findings(debate: Debate, found: Findings, most: int) -> None:
    """Shorten the texts that were found to so many characters each: to what is nearest to the question, or else, with a warning, to their beginnings."""
    long = {str(place): each for place, each in enumerate(found.findings) if len(each.text) > most}
    if not long:
        return
    passages: dict[str, Sequence[Passage]] = {}
    try:
        nearest = await _find(debate, lambda: {name: each.text for name, each in long.items()})
        passages = {each.path: each.passages for each in nearest.documents}
    except StepError as error:
        found.warnings.append(
            f"of sources with more than {most:,} characters the beginnings are shown: {error}"
        )
    for name, each in long.items():
        short, _ = shorten_to_passages(each.text, passages.get(name, ()), most)
        each.text = short.strip()
        each.source.sha256 = hashlib.sha256(each.text.encode()).hexdigest()


class _Cut(Struct, frozen=True):
    path: str
    passage: Passage
    text: str


async def _find(debate: Debate, read: Callable[[], Mapping[str, str]]) -> NearestPassages:
    cuts = await in_thread_per_tenant(lambda: _cut_texts(read()))
    asked = truncate_text(debate.spec.question)
    vectors = await debate.services.convergence.embed([asked, *(each.text for each in cuts)])
    return await in_thread_per_tenant(lambda: _choose(cuts, vectors))


def _cut_texts(texts: Mapping[str, str]) -> list[_Cut]:
    size = choose_size(sum(map(len, texts.values())))
    return [
        _Cut(path, each, text[each.start : min(each.end, each.start + EMBEDDED)].strip())
        for path, text in texts.items()
        for each in cut_passages(text, size)
    ]


def _choose(cuts: Sequence[_Cut], vectors: Sequence[Sequence[float]]) -> NearestPassages:
    asked, *others = vectors
    found: dict[str, DocumentPassages] = {}
    for place in rank_vectors(asked, others)[:MAX_PASSAGES]:
        cut = cuts[place]
        found.setdefault(cut.path, DocumentPassages(path=cut.path)).passages.append(cut.passage)
    return NearestPassages(documents=found.values())
