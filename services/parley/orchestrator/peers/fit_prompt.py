"""Prompts that fit a message to the gateway, which fits them to the context of a route: a smaller bound, as a rule."""

from collections.abc import Sequence
from typing import Final

from parley.orchestrator.model.errors import StepError
from parley.orchestrator.peers.documents import fill_in_documents
from parley.runtime.passages import shorten_to_passages
from parley.v1.gateway_pb2 import GenerateRequest, PromptPart

MAX_PROMPT_BYTES: Final = 8 * 1024 * 1024
"""Of all parts together: with an agent's own prompts less than a message may have, and more than any model reads."""

_PART_BYTES: Final = 16
"""The size of a part without its texts."""
_MIN_BYTES: Final = 256
"""No part is shortened below this."""
_MARK_BYTES: Final = 64
_HEAD_SHARE: Final = 0.65
"""Of a shortened text this much is kept from its beginning, the rest from its end."""


def fit_prompt(request: GenerateRequest) -> int:
    """Shorten the prompt of a request until it can be sent; return the characters that were left out.

    Parts with a larger `shrink_priority` are shortened first, the longest of them most, in their middle, with a mark
    in place of the removed text. Raise StepError if the parts that must not be shortened are too long by themselves.
    """
    if request.ByteSize() <= MAX_PROMPT_BYTES:
        return 0
    left_out = _shorten_parts(request, MAX_PROMPT_BYTES)
    size = _bytes(request.prompt)
    if size > MAX_PROMPT_BYTES:
        message = f"the prompt has {size:,} bytes that may not be left out, and at most {MAX_PROMPT_BYTES:,} are sent"
        raise StepError("CONTEXT_OVERFLOW", message)
    return left_out


def shorten_prompt(request: GenerateRequest, share: float) -> int:
    """Shorten the prompt of a request to a share of its size, as `fit_prompt` does; return the characters that were left out.

    What must not be shortened stays, whatever its size.
    """
    if share >= 1:
        return 0
    fill_in_documents(request, keep_digests=False)
    return _shorten_parts(request, int(_bytes(request.prompt) * share))


def _shorten_parts(request: GenerateRequest, max_bytes: int) -> int:
    left_out = 0
    for give in sorted(
        {part.shrink_priority for part in request.prompt if part.shrink_priority > 0}, reverse=True
    ):
        excess = _bytes(request.prompt) - max_bytes
        if excess <= 0:
            break
        group = [part for part in request.prompt if part.shrink_priority == give]
        limit = _common_limit([_size(part.text) for part in group], excess)
        left_out += sum(_shorten(part, limit) for part in group)
    return left_out


def _bytes(parts: Sequence[PromptPart]) -> int:
    return sum(_size(part.text) + _size(part.document) + _PART_BYTES for part in parts)


def _size(text: str) -> int:
    return len(text.encode())


def _common_limit(sizes: Sequence[int], excess: int) -> int:
    """Return the size that, as everyone's upper bound, takes `excess` off the sum: the longest give, the short keep all."""
    left = max(sum(sizes) - excess, 0)
    for place, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - place)
        if size > share:
            return max(share, _MIN_BYTES)
        left -= size
    return max(sizes)


def _shorten(part: PromptPart, limit: int) -> int:
    """Cut the middle, or else all but its passages, out of a part that is longer than so many bytes; return the characters that are gone."""
    written = part.text.encode()
    if len(written) <= limit:
        return 0
    if part.passages:
        part.text, gone = shorten_to_passages(part.text, part.passages, limit, _size)
        del part.passages[:]  # places in the text as it was
        return gone
    kept = limit - _MARK_BYTES
    cut = round(kept * _HEAD_SHARE)
    head = written[:cut].decode(errors="ignore")
    tail = written[len(written) - (kept - cut) :].decode(errors="ignore")
    gone = len(part.text) - len(head) - len(tail)
    part.text = f"{head}\n[… {gone} characters left out …]\n{tail}"
    return gone
