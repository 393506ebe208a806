"""Who debates, as the events of a debate say it, for those who show these events to people."""

from msgspec import Struct
from msgspec.structs import replace

from parley.runtime.agent_names import Names, name_numbered
from parley.v1.agent_pb2 import Agent
from parley.v1.event_pb2 import Event


class Debaters(Struct, frozen=True):
    """The agents that debate.

    Attributes:
        ids: Their ids, in the order of their letters.
        numbered: What they number in what they write.
    """

    ids: tuple[str, ...] = ()
    numbered: str = "issue"

    @property
    def names(self) -> Names:
        """The names for the letters by which they know each other."""
        return Names([Agent(id=each) for each in self.ids], Agent(), self.numbered)

    def after(self, event: Event) -> "Debaters":
        """Return who debates after an event."""
        match event.WhichOneof("payload"):
            case "debate_created":
                spec = event.debate_created.spec
                return Debaters(
                    tuple(each.agent.id or each.agent_id for each in spec.agents), name_numbered(spec)
                )
            case "team_selected":
                team = event.team_selected.agent_ids
                return replace(self, ids=tuple(each for each in self.ids if each in team))
            case "participant_joined" if event.participant_joined.agent.id not in self.ids:
                return replace(self, ids=(*self.ids, event.participant_joined.agent.id))
            case _:
                return self
