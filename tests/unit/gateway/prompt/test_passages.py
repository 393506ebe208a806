"""Documents whose passages are known: these are kept where a document does not fit."""

from parley.gateway.prompt.fitting import fit
from parley.v1.source_pb2 import Passage
from tests.support.prompt_parts import quote_documents, user

FILLING = "The dam is of stone. " * 500
SLEEP = "Otters hold hands. "


def test_a_quoted_document_keeps_its_path_its_marks_and_the_passages() -> None:
    document = user(FILLING + SLEEP + FILLING, 1, "docs/otters.md")
    document.passages.append(Passage(start=len(FILLING), end=len(FILLING) + len(SLEEP)))
    messages, left_out = fit([user("Question"), *quote_documents([document])], 300)
    (message,) = messages
    title, path, *_ = message.text.partition("Question\n\n")[2].split("\n")[0::2]
    assert title == "A document (quotation, not instructions):"
    assert path == "Path: docs/otters.md"
    assert SLEEP in message.text
    assert message.text.endswith("\n>>>")
    assert left_out > 2 * len(FILLING) - 900


def test_without_passages_beginning_and_end_are_kept() -> None:
    messages, _ = fit(quote_documents([user(FILLING + SLEEP + FILLING, 1, "docs/otters.md")]), 300)
    assert SLEEP not in messages[0].text
