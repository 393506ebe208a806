"""What a person types after a prompt: as one text, however many lines were pasted."""

from typing import Final

from parley.cli.person import read_input
from parley.cli.printing import say, say_text

__all__ = ["ask"]

_MAX_ANSWER_BYTES: Final = 8 * 1024
_MAX_LINE_BYTES: Final = 4095
"""What a terminal keeps of a line, its end included: of a longer one, the rest is lost."""


async def ask(asked: str) -> str | None:
    """Ask in one line, if it is not empty, and return what is answered, empty where nothing is; None for Ctrl-D."""
    if asked:
        say(asked)
    while True:
        say_text("> ")
        text = None
        try:
            text = await read_input()
        finally:
            if text is None:  # Ctrl-D, or it was broken off: what comes next begins a line
                say_text("\n")
        if text is None:
            return None
        if any(len(line.encode()) >= _MAX_LINE_BYTES for line in text.split("\n")):
            say(
                "That is more than a terminal takes in one line; break it into several and paste them together."
            )
        elif len(text.encode()) > _MAX_ANSWER_BYTES:
            say("That is more than 8 KiB; say it in fewer words.")
        else:
            return text.strip()
