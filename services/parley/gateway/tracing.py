"""What spans say of a call besides its model."""

from msgspec import Struct


class TraceLabels(Struct, frozen=True):
    """What spans say of a request besides its model: the agent, and the debate it speaks in."""

    agent: str = ""
    conversation: str = ""

    def attributes(self) -> dict[str, str]:
        """Return what is known of them, under the names of the semantic conventions."""
        named = {"gen_ai.agent.name": self.agent, "gen_ai.conversation.id": self.conversation}
        return {name: value for name, value in named.items() if value}
