"""The key of an endpoint in what its model answers: taken out, in whatever pieces it comes."""

from typing import Final

from parley.runtime.redaction import REDACTED, forms_of

_MIN_KEY: Final = 12
"""Shorter keys are words such as `ollama` or `no-key`, which an answer may need."""
_MIN_BEGINNING: Final = 8
"""Characters of a key with which an answer ends that are taken out too."""


def find_key_forms(key: str) -> tuple[str, ...]:
    """Return the forms of a key, the longest first: as it is, in URLs and in base64; none of a word that answers may need."""
    return tuple(sorted(set(forms_of(key)), key=len, reverse=True)) if len(key) >= _MIN_KEY else ()


class KeyMask:
    """Hides the forms of one key in one text that comes in pieces."""

    def __init__(self, forms: tuple[str, ...]) -> None:
        self._forms = forms
        self._kept = ""

    def feed(self, piece: str) -> str:
        """Return what of the text is clean and ready now; what may be the beginning of the key is kept back."""
        if not self._forms:
            return piece
        text = self.hide(self._kept + piece)
        kept = max(_find_beginning(text, form) for form in self._forms)
        self._kept = text[len(text) - kept :]
        return text[: len(text) - kept]

    def end(self) -> str:
        """Return what was kept back until the text's end."""
        kept, self._kept = self._kept, ""
        return REDACTED if len(kept) >= _MIN_BEGINNING else kept

    def hide(self, text: str) -> str:
        """Return a whole text without the key."""
        for form in self._forms:
            text = text.replace(form, REDACTED)
        return text


def _find_beginning(text: str, form: str) -> int:
    """Return how many characters of a form the text ends with; 0 for none."""
    at = max(len(text) - len(form) + 1, 0)
    while (at := text.find(form[0], at)) >= 0:
        if form.startswith(text[at:]):
            return len(text) - at
        at += 1
    return 0
