"""Acts on a debate, as the tool `steer_debate` names them."""

from collections.abc import Mapping
from typing import Literal, assert_never

from msgspec import Struct

from parley.client import ParleyClient

Action = Literal[
    "guide",
    "continue",
    "end",
    "answer",
    "approve",
    "refuse",
    "pause",
    "resume",
    "cancel",
    "mute",
    "unmute",
]


class Act(Struct, frozen=True):
    """What is done.

    Attributes:
        answers: Answers to single questions, by their ids.
        agent_id: Whom it is about, of `mute` and `unmute`.
        checkpoint: The checkpoint that it is for; empty: the open one.
    """

    action: Action
    text: str
    answers: Mapping[str, str]
    agent_id: str
    checkpoint: str


async def steer(parley: ParleyClient, debate_id: str, act: Act) -> int:  # noqa: C901, PLR0911 (a case an act)
    """Do it, and return the sequence of the event that records it. Raise ParleyError."""
    match act.action:
        case "guide":
            return await parley.guide(debate_id, act.text, checkpoint=act.checkpoint)
        case "continue":
            return await parley.continue_debate(debate_id, checkpoint=act.checkpoint)
        case "end":
            return await parley.end_rounds(debate_id, checkpoint=act.checkpoint)
        case "answer":
            return await parley.answer(debate_id, act.text, answers=act.answers, checkpoint=act.checkpoint)
        case "approve" | "refuse":
            approved = act.action == "approve"
            return await parley.approve(debate_id, act.text, approved=approved, checkpoint=act.checkpoint)
        case "pause":
            return await parley.pause(debate_id)
        case "resume":
            return await parley.resume(debate_id)
        case "cancel":
            return await parley.cancel(debate_id, act.text)
        case "mute":
            return await parley.mute(debate_id, act.agent_id)
        case "unmute":
            return await parley.unmute(debate_id, act.agent_id)
        case _:
            assert_never(act.action)
