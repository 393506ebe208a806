"""Vectors made from a text's words: texts that share words are near, and a text is always the same vector."""

import base64
import re
from array import array
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from math import sqrt
from sys import byteorder

_PLACES_PER_WORD = 4
_WORD = re.compile(r"\w+")


def embed(text: str, dimensions: int) -> list[float]:
    """Return a unit vector of that many dimensions; a text without words is the first axis."""
    vector = [0.0] * dimensions
    for word in _WORD.findall(text.lower()):
        for place, sign in _places(word, dimensions):
            vector[place] += sign
    length = sqrt(sum(value * value for value in vector))
    if length == 0.0:
        vector[0] = length = 1.0
    return [value / length for value in vector]


def as_base64(vector: Sequence[float]) -> str:
    """Encode as the OpenAI API does: little-endian 32-bit floats in base64."""
    numbers = array("f", vector)
    if byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()


@lru_cache(maxsize=65_536)
def _places(word: str, dimensions: int) -> tuple[tuple[int, float], ...]:
    digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4 * _PLACES_PER_WORD).digest()
    numbers = (int.from_bytes(digest[at : at + 4]) for at in range(0, len(digest), 4))
    return tuple(((number >> 1) % dimensions, 1.0 if number & 1 else -1.0) for number in numbers)
