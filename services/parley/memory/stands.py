"""A stand of the position ledger: how it is stored, and what follows from the records of two of them without reading them.

What is deduced rests on two things that a debate states: whether an agent's position was decided for, and how a decision stands to
an earlier one.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, Final

from parley.memory.debate import storage_key
from parley.memory.embedding import Embedding
from parley.memory.same_question import ask_the_same
from parley.memory.stand_reader import MAX_CHARACTERS
from parley.memory.stored_vectors import Matrix, decode_vector, encode_vector, measure_likeness
from parley.runtime.page_tokens import Place
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import Collection, Document, Fields, Index
from parley.v1 import effect_pb2 as effect
from parley.v1.memory_pb2 import FinalStand, LedgerPosition, RecordDebateRequest

POSITIONS: Final = Collection(
    "positions",
    (
        Index(("debate_key",)),
        Index(("place",)),
        Index(("tenant", "place")),
        Index(("tenant", "agent_key", "place", "about")),
        Index(("tenant", "flipped", "place")),
        Index(("tenant", "agent_key", "flipped", "place")),
    ),
    private=("question", "text", "decided", "vector"),
    superseded=(Index(("tenant", "agent_key", "place")), Index(("key",))),
)
SAME_FROM: Final = 0.95
"""The likeness (a cosine) of two questions from which they are one matter: near verbatim. `Does the shop need …?` and `Does the archive
need …?` have more than half of it, so that less does not tell."""
ALIKE_FROM: Final = 0.7
"""The likeness of two questions from which they are one matter if they ask in the same words."""
MAYBE_FROM: Final = 0.5
"""The likeness from which two questions may be one matter."""
MAX_LATEST: Final = 200
"""Of an agent's stands, and of a tenant's flips and decisions, the latest so many are looked at."""
KIND: Final = "stand of the ledger"
_STAYS: Final = (effect.DECISION_RELATION_CONFIRMS, effect.DECISION_RELATION_REFINES)
_MAX_TEXT: Final = 2_000


class Matter(Enum):
    """Whether two debates are about one matter."""

    SAME = "same"
    MAYBE = "maybe"
    OTHER = "other"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StandHead:
    """What a stand is about, as all stands of its debate are.

    Attributes:
        concluded: When the debate concluded, in milliseconds of Unix time.
        related: How the decision stands to those of earlier debates, by their ids.
        vector: The meaning of the question.
        model: The model that made it.
    """

    debate: str
    concluded: int
    related: Mapping[str, int]
    vector: Matrix
    model: str

    def find_matter(self, earlier: "StandHead") -> Matter:
        """Return whether an earlier stand is on the same matter: this debate's answer says so or not, or the questions are alike."""
        return self.judge_matter(earlier, measure_likeness(self.vector, earlier.vector))

    def judge_matter(self, earlier: "StandHead", likeness: float) -> Matter:
        """Return the same, of questions of this likeness."""
        relation = self.related.get(earlier.debate)
        if relation == effect.DECISION_RELATION_OTHER_MATTER:
            return Matter.OTHER
        if relation:
            return Matter.SAME
        if self.model != earlier.model:
            return Matter.OTHER
        if likeness >= SAME_FROM:
            return Matter.SAME
        return Matter.MAYBE if likeness >= MAYBE_FROM else Matter.OTHER


@dataclass(frozen=True, eq=False, kw_only=True)  # without slots, so that it keeps what it derives
class Stand(StandHead):
    """Where an agent stood in the end of a debate, and what the debate decided.

    Attributes:
        for_decision: Whether it was decided for; None: not known.
        decided: The first stand that was decided for, of any agent. Empty: not known.
    """

    tenant: str
    agent: str
    agent_name: str
    question: str
    domain: str
    text: str
    for_decision: bool | None
    decided: str

    @cached_property
    def key(self) -> str:
        """The key of its document."""
        return f"{self.debate_key}/{agent_key(self.agent)}"

    @cached_property
    def debate_key(self) -> str:
        """The key under which its debate is stored."""
        return storage_key(self.tenant, self.debate)

    @cached_property
    def place(self) -> str:
        """Its place in the order of time, as text; two stands of an agent have different ones."""
        return to_place((self.concluded, self.key))

    @cached_property
    def about(self) -> str:
        """What differs if what it is about does, so that who knows that need not read it again."""
        said = [self.debate_key, self.concluded, self.model, sorted(self.related.items())]
        return hashlib.sha256(f"{said}".encode() + self.vector.tobytes()).hexdigest()[:32]

    def is_on_matter(self, earlier: "Stand") -> bool:
        """Return whether an earlier stand is on the same matter, by what `judge_matter` knows or by the words of questions that are alike."""
        likeness = measure_likeness(self.vector, earlier.vector)
        matter = self.judge_matter(earlier, likeness)
        if matter is not Matter.MAYBE:
            return matter is Matter.SAME
        return likeness >= ALIKE_FROM and ask_the_same(
            (earlier.question, earlier.text), (self.question, self.text)
        )

    def deduce_upheld(self, earlier: "Stand") -> bool | None:
        """Return whether what this debate decided is what a stand of it or an earlier one asks for; None if the records do not say."""
        if earlier.debate == self.debate:
            return earlier.for_decision or None  # what is decided instead may be a third thing
        relation = self.related.get(earlier.debate)
        if relation in _STAYS:
            return earlier.for_decision
        if relation == effect.DECISION_RELATION_REVERSES and earlier.for_decision:
            return False
        return None  # who opposed a decision that is reversed may be opposed to the next one too

    def deduce_kept(self, earlier: "Stand") -> bool | None:
        """Return whether the agent kept an earlier stand; None if the records do not say."""
        upheld = self.deduce_upheld(earlier)
        if upheld is None or self.for_decision is None:
            return None
        if self.for_decision:
            return upheld
        return False if upheld else None  # two stands against one decision may be opposed

    def to_message(self) -> LedgerPosition:
        """Return it as it is listed, without what it changes."""
        found = LedgerPosition(
            agent_id=self.agent,
            agent_name=self.agent_name,
            debate_id=self.debate,
            question=self.question,
            domain=self.domain,
            stand=self.text,
            for_decision=self.for_decision,
        )
        found.concluded_at.FromMilliseconds(self.concluded)
        return found


@lru_cache(256)
def agent_key(agent: str) -> str:
    """Return what stands for an agent in keys: ids may be long, and hold any character."""
    return hashlib.sha256(agent.encode()).hexdigest()[:32]


def to_place(place: Place) -> str:
    """Return a place in the order of time as text."""
    milliseconds, key = place
    return f"{max(int(milliseconds), 0):015d}/{key}"


def create_stands(tenant: str, record: RecordDebateRequest, meaning: Embedding) -> list[Stand]:
    """Return the stands of a debate; `meaning` is that of its shortened question."""
    debate = record.debate
    related = {each.debate_id: int(each.relation) for each in debate.related}
    decided = next((each.text for each in record.stands if each.for_decision), "")

    def create(each: FinalStand) -> Stand:
        return Stand(
            tenant=tenant,
            agent=each.agent_id,
            agent_name=each.agent_name,
            debate=debate.debate_id,
            question=shorten_question(debate.question),
            domain=debate.domain,
            concluded=debate.concluded_at.ToMilliseconds(),
            text=each.text[:MAX_CHARACTERS],
            for_decision=each.for_decision if each.HasField("for_decision") else None,
            decided=decided[:MAX_CHARACTERS],
            related=related,
            vector=meaning.vector,
            model=meaning.model,
        )

    return [create(each) for each in {each.agent_id: each for each in record.stands}.values()]


def shorten_question(question: str) -> str:
    """Return as much of a question as the ledger keeps."""
    return question[:_MAX_TEXT]


def to_fields(stand: Stand) -> Fields:
    """Return the content of a stand's document."""
    return {
        "key": stand.key,
        "debate_key": stand.debate_key,
        "place": stand.place,
        "about": stand.about,
        "tenant": stand.tenant,
        "agent_key": agent_key(stand.agent),
        "agent": stand.agent,
        "agent_name": stand.agent_name,
        "debate": stand.debate,
        "question": stand.question,
        "domain": stand.domain,
        "concluded": stand.concluded,
        "text": stand.text,
        "for_decision": stand.for_decision,
        "decided": stand.decided,
        "related": dict(stand.related),
        "model": stand.model,
        "vector": encode_vector(stand.vector),
    }


def read_stands(found: Iterable[Document]) -> list[Stand]:
    """Return the stands in documents, without those that cannot be read."""
    return list(skip_unreadable(found, _from_document, KIND))


def read_heads(found: Iterable[Document]) -> dict[str, StandHead]:
    """Return what stands are about by their keys, of documents with the fields `HEAD_FIELDS`, without those that cannot be read."""
    return dict(skip_unreadable(found, lambda each: (each.key, StandHead(**_read_head(each.fields))), KIND))


HEAD_FIELDS: Final = ("debate", "concluded", "related", "model", "vector")
_TEXTS: Final = ("tenant", "agent", "agent_name", "question", "domain", "text", "decided")
STAND_FIELDS: Final = (*HEAD_FIELDS, *_TEXTS, "for_decision")
STAND_CHARACTERS: Final = 2_000
"""To read a stand takes about as long as to read so many."""


def _read_head(fields: Any) -> dict[str, Any]:
    return {
        **{name: str(fields[name]) for name in ("debate", "model")},
        "concluded": int(fields["concluded"]),
        "related": {str(debate): int(relation) for debate, relation in fields["related"].items()},
        "vector": decode_vector(fields["vector"]),
    }


def _from_document(document: Document) -> Stand:
    fields: Any = document.fields
    texts: Any = {name: str(fields[name]) for name in _TEXTS}
    return Stand(**_read_head(fields), **texts, for_decision=fields["for_decision"])
