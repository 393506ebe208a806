"""Grounding without a call: a local model of the convergence service says which sentences of the answer are supported."""

from functools import partial
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.answer_text import answer_text
from parley.orchestrator.model.named_sources import split_sentences
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.peers.services import truncate_text
from parley.orchestrator.phases.analysis.exhibits import (
    MAX_ROOM,
    Exhibits,
    collect_exhibits,
    list_cited,
    text_of,
)
from parley.orchestrator.phases.whole_debate import read_whole_debate
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1.analysis_pb2 import (
    CLAIM_GROUNDING_SUPPORTED,
    CLAIM_GROUNDING_UNSUPPORTED,
    Analysis,
    AnswerClaim,
)
from parley.v1.convergence_pb2 import ClaimSupport, FindSupportRequest
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import StepFailed

KEY: Final = f"{AFTER_THE_ANSWER}grounding"
MAX_CLAIMS: Final = 12
"""How many claims of an answer are looked at."""
SUPPORT_SEARCH: Final = Activity(
    "support-search", "finding what supports the answer", title="search for support"
)
_MAX_CHARACTERS: Final = 2_000
"""Of a claim."""
_FEWEST_WORDS: Final = 3
"""Of a claim: less is a heading or a word by itself."""


async def ground_without_call(debate: Debate, outcome: Outcome, missing: Analysis) -> Analysis:
    """Return which sentences of the answer are supported; `missing` as it is if there is no model that knows it."""
    request, exhibits = await read_whole_debate(debate, outcome, partial(_create_request, debate, outcome))
    if not request.claims:
        return missing
    found = await debate.call_service(
        f"{KEY}/support",
        SUPPORT_SEARCH.create_work(),
        request,
        lambda: debate.services.convergence.find_support(request),
    )
    if isinstance(found, StepFailed):
        return missing
    told = zip(request.claims, found.claims, strict=True)
    claims = [_to_claim(text, each, exhibits) for text, each in told if each.HasField("probability")]
    return Analysis(claims=claims, left_out=exhibits.left_out) if claims else missing


def _create_request(debate: Debate, outcome: Outcome) -> tuple[FindSupportRequest, Exhibits]:
    """Return the sentences of the answer and all that was said, in the order of the exhibits' names."""
    exhibits = collect_exhibits(debate, MAX_ROOM, list_cited(debate, answer_text(outcome)))
    held = list(debate.documents.texts.values())
    sources = [held[number - 1].text for number in exhibits.sources.values()]
    said = [
        debate.spec.question,
        *(text_of(debate, each) for each in exhibits.contributions.values()),
        *sources,
    ]
    sentences = (each for each in split_sentences(answer_text(outcome)) if len(each.split()) >= _FEWEST_WORDS)
    claims = list(dict.fromkeys(each[:_MAX_CHARACTERS] for each in sentences))[:MAX_CLAIMS]
    return FindSupportRequest(claims=claims, texts=map(truncate_text, said)), exhibits


def _to_claim(text: str, found: ClaimSupport, exhibits: Exhibits) -> AnswerClaim:
    names = exhibits.names
    return AnswerClaim(
        text=text,
        grounding=CLAIM_GROUNDING_SUPPORTED if found.texts else CLAIM_GROUNDING_UNSUPPORTED,
        score=round(100 * found.probability),
        supported_by=[exhibits.ground(names[place]) for place in found.texts],
        credence=found.probability,
    )
