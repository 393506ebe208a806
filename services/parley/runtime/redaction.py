"""Remove secrets from endpoints' messages, which often repeat the request."""

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote

REDACTED: Final = "***"
_MIN_SECRET: Final = 4
"""Shorter parts of a secret occur in any text and give nothing away."""
_MIN_WORD: Final = 8
"""Shorter words of a header's value are not secrets."""
_MIN_BASE64: Final = 8
"""Shorter parts in base64 give nothing away."""
_MASK: Final = re.compile(r"\*{3}|•{3}|\.{3}|…|[xX]{4}")
"""How endpoints mask most of a key."""
_SEPARATORS: Final = re.compile(r"[\s,;=]+")
_USER_IN_URL: Final = re.compile(r"(?<=://)[^\s/?#@]{1,512}@")
_KEY_IN_URL: Final = re.compile(
    r"(?i)([?&;](?:[a-z_-]{0,40}(?:key|token|secret|signature|password)|sig|auth)=)[^\s&;#\"'<>]{1,2048}"
)


class Redaction:
    """Hides a key, the values of headers and whatever looks like a key: as they are, in URLs, and in base64."""

    def __init__(self, key: str, header_values: Iterable[str] = ()) -> None:
        words = {
            word for value in header_values for word in _SEPARATORS.split(value) if len(word) >= _MIN_WORD
        }
        secrets = words | ({key} if len(key) >= _MIN_SECRET else set())
        self._ends = {end for each in secrets for end in (each[:_MIN_SECRET], each[-_MIN_SECRET:])}
        forms = {form for secret in secrets for form in forms_of(secret)}
        self._secrets = sorted(forms, key=len, reverse=True)  # one may be a part of another

    def __call__(self, message: str) -> str:
        """Return the message without secrets, also if it ends within one."""
        for secret in self._secrets:
            message = message.replace(secret, REDACTED)
        for secret in self._secrets:
            message = _remove_beginning(message, secret)
        message = _USER_IN_URL.sub(f"{REDACTED}@", message)
        message = _KEY_IN_URL.sub(rf"\g<1>{REDACTED}", message)
        words = message.split(" ")
        return " ".join(
            REDACTED if _looks_like_a_key(each) or self._is_masked(each) else each for each in words
        )

    def _is_masked(self, word: str) -> bool:
        """Return whether a word is a masked secret of which the endpoint shows the beginning or the end."""
        return _MASK.search(word) is not None and any(end in word for end in self._ends)


def forms_of(secret: str) -> Iterator[str]:
    """Yield the forms of a secret: plain, URL-encoded, and base64 at each offset of the encoded bytes."""
    yield secret
    yield quote(secret, safe="")
    yield quote(secret, safe="").lower()
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + secret.encode()).rstrip(b"=").decode()
        # The first and the last characters also encode bits of their neighbours.
        inner = encoded[(before * 8 + 5) // 6 : len(encoded) - bool((before + len(secret.encode())) % 3)]
        if len(inner) >= _MIN_BASE64:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")


def _remove_beginning(message: str, secret: str) -> str:
    """Return the message without the beginning of the secret with which it ends."""
    text = message.removesuffix("…")
    for length in range(min(len(secret) - 1, len(text)), _MIN_SECRET - 1, -1):
        if text.endswith(secret[:length]):
            return f"{text[:-length]}{REDACTED}{message[len(text) :]}"
    return message


def _looks_like_a_key(word: str) -> bool:
    bare = word.strip(".,;:'\"`()")
    return bare.startswith(("sk-", "Bearer", "sk_")) and len(bare) > 6
