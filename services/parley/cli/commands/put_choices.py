"""The choices of a checkpoint, put to the person at the terminal: how to go on, and whether something is approved."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from parley.cli.commands.typed_answer import ask
from parley.cli.person import discard_input
from parley.cli.printing import say, say_line
from parley.cli.terminal.rendered import show_markdown
from parley.client import ParleyClient

__all__ = ["Action", "ask_approval", "ask_direction"]

Action = Callable[[ParleyClient, str, str], Awaitable[int]]
"""Does in the debate with an id, at the checkpoint with a key, what a person chose; returns the sequence of its event."""

_DIRECTIONS: Final = {"continue": "c", "guide": "g", "end": "e"}
_APPROVALS: Final = {"approve": "a", "yes": "a", "y": "a", "refuse": "r", "no": "r", "n": "r"}


async def ask_direction(text: str) -> Action | None:
    """Show where the debate stands, and return what is chosen; None for Ctrl-D."""
    _show(text)
    while True:
        choice = await _ask_choice("[C]ontinue  [G]uide  [E]nd early", _DIRECTIONS)
        if choice != "g":
            return {"c": _continue, "e": _end}.get(choice or "")
        guidance = await ask("Your guidance:")
        if guidance:
            return lambda parley, debate_id, key: parley.guide(debate_id, guidance, checkpoint=key)
        say("No guidance was given.")


async def ask_approval(text: str) -> Action | None:
    """Show what is to be approved, and return what is chosen; None for Ctrl-D."""
    _show(text)
    while True:
        choice = await _ask_choice("[A]pprove  [R]efuse", _APPROVALS)
        if choice != "r":
            return _approve if choice == "a" else None
        why = await ask("Why, or what should change? An empty line says nothing, Ctrl-D goes back.")
        if why is not None:
            return lambda parley, debate_id, key: parley.approve(
                debate_id, why, approved=False, checkpoint=key
            )


async def _continue(parley: ParleyClient, debate_id: str, key: str) -> int:
    return await parley.continue_debate(debate_id, checkpoint=key)


async def _end(parley: ParleyClient, debate_id: str, key: str) -> int:
    return await parley.end_rounds(debate_id, checkpoint=key)


async def _approve(parley: ParleyClient, debate_id: str, key: str) -> int:
    return await parley.approve(debate_id, checkpoint=key)


def _show(text: str) -> None:
    discard_input()
    show_markdown(text)


async def _ask_choice(choices: str, words: Mapping[str, str]) -> str | None:
    """Return the letter of the choice that is typed, by its letter or a word for it; None for Ctrl-D."""
    letters = {*words.values()}
    asked = choices
    while True:
        say_line(asked)  # as it stands, with two spaces between choices
        typed = await ask("")
        if typed is None:
            return None
        letter = words.get(typed.lower(), typed.lower())
        if letter in letters:
            return letter
        asked = f"Type a letter: {choices}"
