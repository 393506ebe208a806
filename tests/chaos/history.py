"""What the checker goes by: what clients saw, the stored logs, the model server's ledger, and what was done to services."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from parley.storage.ports import Record
from tests.support.model_server import Record as ModelCall

__all__ = ["Accepted", "Fault", "History", "Intervention", "ModelCall", "Seen", "Watch"]


@dataclass(frozen=True, slots=True)
class Fault:
    """What was done to a service, from when until when (`time.monotonic`): `kill`, `stop`, `drain` or `cut`.

    To the store of all of them (the target `store`): `hold`, `slow`, `cut` or `restart`.
    """

    target: str
    kind: str
    began: float
    ended: float

    @property
    def service(self) -> str:
        """The service without its number."""
        return self.target.partition(">")[0].partition("-")[0]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A debate that a client was told is accepted. `mark` stands in each of its prompts and in no other's."""

    debate: str
    request_id: str
    mark: str


@dataclass(frozen=True, slots=True)
class Seen:
    """An event as a watcher saw it."""

    sequence: int
    kind: str
    hash: bytes


@dataclass(frozen=True, slots=True)
class Watch:
    """One watcher of a debate, from after a sequence on: what each stream it opened sent, and whether the last ended.

    `problem` is what made it give up.
    """

    debate: str
    after: int
    streams: Sequence[Sequence[Seen]]
    ended: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Intervention:
    """An intervention and its answer: the sequence it was told, 0 where it was refused, None where no answer came.

    `act` is its name in the contract, such as `cancel`.
    """

    debate: str
    request_id: str
    act: str
    sequence: int | None


@dataclass(frozen=True, slots=True)
class History:
    """A whole run. `wall` is `time.time() - time.monotonic()`: calls and faults are of one clock, events of the other."""

    accepted: Sequence[Accepted]
    logs: Mapping[str, Sequence[Record]]
    calls: Sequence[ModelCall] = ()
    watches: Sequence[Watch] = ()
    interventions: Sequence[Intervention] = ()
    faults: Sequence[Fault] = ()
    wall: float = 0.0
    others: Sequence[str] = field(default=())
    """Debates in the store that no client was told of; whatever is there must be whole."""
