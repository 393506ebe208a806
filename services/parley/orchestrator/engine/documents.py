"""The context documents of a debate: held once in this process, and named in prompts by their digests."""

from collections.abc import Iterable

from parley.orchestrator.model.tasks import document_part
from parley.runtime.held_texts import HeldText
from parley.v1.gateway_pb2 import PromptPart


class Documents:
    """The documents of a debate.

    Attributes:
        texts: The text of each document, by its path.
        digests: What stands for the text of each document, 32 hex digits, by its path.
    """

    def __init__(self, texts: Iterable[tuple[str, HeldText]]) -> None:
        """Hold documents by their paths."""
        self.texts = dict(texts)
        self.digests = {path: held.digest for path, held in self.texts.items()}

    def parts(self, give: int) -> tuple[PromptPart, ...]:
        """Return a part of a prompt for each document."""
        return tuple(document_part(path, held, give) for path, held in self.texts.items())
