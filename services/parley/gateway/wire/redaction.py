"""Takes secrets out of what endpoints say: they like to repeat what they were sent."""

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["Redaction"]

_SHOWN: Final = "***"
_MIN_SECRET: Final = 4
"""Characters of a secret that give something away; fewer are found in any text."""
_MIN_WORD: Final = 8
"""Words of a header's value that are shorter are no secrets."""
_BETWEEN: Final = re.compile(r"[\s,;=]+")


class Redaction:
    """Hides a key, the values of headers and whatever looks like a key."""

    def __init__(self, key: str, header_values: Iterable[str] = ()) -> None:
        words = {word for value in header_values for word in _BETWEEN.split(value) if len(word) >= _MIN_WORD}
        secrets = words | ({key} if len(key) >= _MIN_SECRET else set())
        self._secrets = sorted(secrets, key=len, reverse=True)  # one may be a part of another

    def __call__(self, message: str) -> str:
        """Return the message without them, also where it breaks off within one."""
        for secret in self._secrets:
            message = message.replace(secret, _SHOWN)
        for secret in self._secrets:
            message = _without_beginning(message, secret)
        return " ".join(_SHOWN if _looks_like_a_key(word) else word for word in message.split(" "))


def _without_beginning(message: str, secret: str) -> str:
    """Return the message without the beginning of the secret that it ends in."""
    text = message.removesuffix("…")
    for length in range(min(len(secret) - 1, len(text)), _MIN_SECRET - 1, -1):
        if text.endswith(secret[:length]):
            return f"{text[:-length]}{_SHOWN}{message[len(text) :]}"
    return message


def _looks_like_a_key(word: str) -> bool:
    bare = word.strip(".,;:'\"`()")
    return bare.startswith(("sk-", "Bearer", "sk_")) and len(bare) > 6
