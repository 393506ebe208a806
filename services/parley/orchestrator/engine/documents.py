"""The context documents of a debate, read once: every prompt has them, and they may be long."""

import hashlib
from collections.abc import Iterable

from parley.orchestrator.model.tasks import user_part
from parley.v1.debate_pb2 import ContextDocument
from parley.v1.gateway_pb2 import PromptPart


class Documents:
    """Documents as prompts hold them.

    Attributes:
        digests: What stands for the text of each document, 32 hex digits, by its path.
    """

    def __init__(self, documents: Iterable[ContextDocument]) -> None:
        """Read the documents of a debate."""
        self._texts = {each.path: each.text for each in documents}
        self.digests = {
            path: hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
            for path, text in self._texts.items()
        }
        self._parts: dict[int, tuple[PromptPart, ...]] = {}

    def parts(self, give: int) -> tuple[PromptPart, ...]:
        """Return a part of a prompt for each document, made once for all prompts that shorten it as readily."""
        if give not in self._parts:
            self._parts[give] = tuple(user_part(text, give, path) for path, text in self._texts.items())
        return self._parts[give]

    def text_of(self, part: PromptPart) -> str:
        """Return the text of any part; that of a document is not read from the message again."""
        return self._texts.get(part.document) or part.text
