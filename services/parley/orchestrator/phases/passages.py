"""Large documents in parts: the passages that are nearest to the question are what prompts keep of a document that is too long for them."""

from collections.abc import Sequence
from dataclasses import dataclass

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.passages import LARGE_BYTES, choose_size, cut_passages, rank_vectors
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.peers.services import truncate_text
from parley.runtime.held_texts import HeldText
from parley.runtime.large_texts import in_thread_per_tenant
from parley.runtime.passages import MAX_PASSAGES
from parley.v1.event_pb2 import StepFailed
from parley.v1.source_pb2 import DocumentPassages, LargeDocument, NearestPassages, Passage, PassagesRequest

PASSAGES = Activity(
    "passages", "finding the passages of large documents", title="passages of large documents"
)
_KEY = "passages"


async def find_passages(debate: Debate) -> NearestPassages | None:
    """Return the passages of the debate's large documents that are nearest to its question, recorded once; None if they are not known.

    They are compared by meaning, by the convergence service. If that does not answer, it is a warning, and prompts keep the beginnings and ends
    of large documents.
    """
    large = {path: held for path, held in debate.documents.texts.items() if len(held.utf8) > LARGE_BYTES}
    if not large:
        return None
    request = PassagesRequest(
        question=debate.spec.question,
        documents=[LargeDocument(path=path, digest=held.digest) for path, held in large.items()],
    )
    found = await debate.call_service(
        _KEY, PASSAGES.create_work(), request, lambda: _find(debate, request.question, large)
    )
    if not isinstance(found, StepFailed):
        return found
    debate.warn(
        _KEY, f"prompts that are too long keep the beginning and the end of large documents: {found.message}"
    )
    return None


@dataclass(frozen=True, slots=True)
class _Cut:
    path: str
    passage: Passage
    text: str


async def _find(debate: Debate, question: str, large: dict[str, HeldText]) -> NearestPassages:
    cuts = await in_thread_per_tenant(lambda: _cut_documents(large))
    asked = truncate_text(question)
    vectors = await debate.services.convergence.embed([asked, *(each.text for each in cuts)])
    return await in_thread_per_tenant(lambda: _choose(cuts, vectors))


def _cut_documents(large: dict[str, HeldText]) -> list[_Cut]:
    size = choose_size(sum(held.count(len) for held in large.values()))
    return [
        _Cut(path, each, truncate_text(text[each.start : each.end].strip()))
        for path, text in ((path, held.text) for path, held in large.items())
        for each in cut_passages(text, size)
    ]


def _choose(cuts: Sequence[_Cut], vectors: Sequence[Sequence[float]]) -> NearestPassages:
    asked, *others = vectors
    found: dict[str, DocumentPassages] = {}
    for place in rank_vectors(asked, others)[:MAX_PASSAGES]:
        cut = cuts[place]
        found.setdefault(cut.path, DocumentPassages(path=cut.path)).passages.append(cut.passage)
    return NearestPassages(documents=found.values())
