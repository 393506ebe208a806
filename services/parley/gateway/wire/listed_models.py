"""What an endpoint says that it serves: the answer of its `/models`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from parley.gateway.wire.json_fields import as_count, as_mapping, as_mappings, as_text

__all__ = ["ListedModel", "text_models"]

_MAX_NAME: Final = 512
_NO_TEXT: Final = re.compile(
    r"embed|minilm|rerank|whisper|paraphrase-|(?:^|[/_-])(?:bge|gte|e5)(?:[/_:-]|$)", re.IGNORECASE
)
"""In the names of models that make vectors, order passages or hear speech: no list says what its models are for."""

_SERVED: Final = ("max_model_len", "n_ctx", "loaded_context_length")
_POSSIBLE: Final = ("context_length", "context_window", "max_context_length")
_CONTEXTS: Final = (*_SERVED, *_POSSIBLE)
"""Fields that tell a model's context: vLLM and SGLang, llama.cpp, LM Studio; then OpenRouter and Together, Groq, Mistral and LM
Studio. What is served comes before what the model could have. `n_ctx_train` is none: a server is seldom started with it."""
_MAX_CONTEXT: Final = 2**31 - 1
"""What the contract can say."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model as a list names it. `context_tokens` are those that prompt and answer may have together; 0: it is not said."""

    name: str
    context_tokens: int = 0


def text_models(listing: object) -> tuple[ListedModel, ...]:
    """Return the models of a list that write text, as far as their names tell, in its order; none where it is no list."""
    listed: dict[str, ListedModel] = {}
    for each in as_mappings(as_mapping(listing).get("data")):
        name = as_text(each.get("id"))
        if _is_name(name) and not _NO_TEXT.search(name):
            listed.setdefault(name, ListedModel(name, _context(each)))
    return tuple(listed.values())


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _MAX_NAME and text.isprintable()


def _context(entry: Mapping[str, Any]) -> int:
    """Return the context of a model by its entry, or by the `meta` that llama.cpp puts there; 0 where neither tells."""
    told = {**as_mapping(entry.get("meta")), **entry}
    return next(
        (tokens for field in _CONTEXTS if 0 < (tokens := as_count(told.get(field))) <= _MAX_CONTEXT), 0
    )
