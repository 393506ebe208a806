"""What follows from the record of a debate beyond its document."""

from typing import Protocol

from parley.memory.writing import Write
from parley.v1.memory_pb2 import RecordDebateRequest


class Effect(Protocol):
    """One thing that follows from a record. The outbox applies and removes each effect until it has succeeded.

    Both methods may run several times for one record, also in two replicas at once: the same call again changes nothing.
    They raise StorageError or ParleyError if they cannot be done now; they are repeated then.
    """

    async def apply(self, tenant: str, record: RecordDebateRequest, write: Write) -> None:
        """Write what follows from a record. It is durable when this returns.

        The writes that need no earlier one are made by one call of `write`, once all is read that they need: it waits for the other
        effects of the record, so that a store can commit them together.
        """

    async def remove(self, tenant: str, record: RecordDebateRequest) -> None:
        """Delete all of it. Of a record that cannot be read, only `debate.debate_id` is set."""
