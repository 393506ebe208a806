"""Chats, by their incoming webhooks."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from parley.orchestrator.delivery.channels.chat_text import Links
from parley.orchestrator.delivery.channels.discord import discord_body
from parley.orchestrator.delivery.channels.mattermost import mattermost_body
from parley.orchestrator.delivery.channels.post import post
from parley.orchestrator.delivery.channels.slack import slack_body
from parley.orchestrator.delivery.channels.teams import teams_body
from parley.orchestrator.delivery.message import Message
from parley.orchestrator.outgoing.sender import GuardedSender
from parley.runtime.clock import Clock
from parley.v1.hook_pb2 import ChatTarget

BODIES: Final[Mapping[ChatTarget.Kind.ValueType, Callable[[str, Links], dict[str, Any]]]] = {
    ChatTarget.KIND_SLACK: slack_body,
    ChatTarget.KIND_TEAMS: teams_body,
    ChatTarget.KIND_DISCORD: discord_body,
    ChatTarget.KIND_MATTERMOST: mattermost_body,
}
"""What each kind of chat is sent for a text and links."""


@dataclass(frozen=True, slots=True)
class ChatChannel:
    """Posts the text of messages to a chat. The body has no id that a chat would know, so that a message may stand there twice."""

    sender: GuardedSender
    clock: Clock
    url: str = field(repr=False)
    kind: ChatTarget.Kind.ValueType

    async def send(self, message: Message) -> None:
        """Send a message. Raise DeliveryError if the chat may not have it."""
        body = json.dumps(BODIES[self.kind](message.text, message.links), ensure_ascii=False).encode()
        await post(self.sender, self.clock, self.url, body, {"Content-Type": "application/json"})
