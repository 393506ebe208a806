"""Critique patterns in a store, and records of debates that have issues."""

from collections.abc import Sequence
from dataclasses import dataclass

from parley.memory.known_patterns import CONTRIBUTIONS, PATTERNS
from parley.memory.patterns import Patterns
from parley.storage.ports import Document, Documents
from parley.v1.critique_pb2 import ISSUE_STATUS_REJECTED, ISSUE_STATUS_TAKEN_UP, Issue, IssueStatus
from parley.v1.memory_pb2 import CritiquePattern, PastDebate, RecordDebateRequest, RecordedIssue
from tests.support.stopping_stores import StoppingDocuments, Writes
from tests.support.word_meanings import WordMeanings

TAKEN, REJECTED = ISSUE_STATUS_TAKEN_UP, ISSUE_STATUS_REJECTED


def issue(
    text: str, status: IssueStatus.ValueType = TAKEN, severity: int | None = None, critic: str = "ada"
) -> RecordedIssue:
    return RecordedIssue(
        critic_agent_id=critic,
        target_agent_id="cy",
        issue=Issue(number=1, text=text, severity=severity),
        status=status,
    )


def record(
    debate_id: str, *issues: RecordedIssue, domain: str = "general", at: int = 1000
) -> RecordDebateRequest:
    debate = PastDebate(debate_id=debate_id, question="Which?", conclusion="This.", domain=domain)
    debate.concluded_at.FromSeconds(at)
    return RecordDebateRequest(debate=debate, issues=issues)


@dataclass(frozen=True)
class KeptPatterns:
    documents: Documents
    meanings: WordMeanings

    @property
    def patterns(self) -> Patterns:
        return Patterns(self.documents, self.meanings, alone=False)

    def stopping(self, writes: Writes) -> Patterns:
        return Patterns(StoppingDocuments(self.documents, writes), self.meanings, alone=False)

    async def listed(
        self, tenant: str = "acme", *, text: str = "", domain: str = "", only_successful: bool = False
    ) -> list[CritiquePattern]:
        found, _ = await self.patterns.list_page(
            tenant, text=text, domain=domain, only_successful=only_successful, after=None, size=200
        )
        return found

    async def stored(self) -> Sequence[Document]:
        return [
            *await self.documents.find(PATTERNS, {}),
            *await self.documents.find(CONTRIBUTIONS, {}),
        ]

    async def counts(self) -> list[tuple[str, int, int, int]]:
        return [(each.examples[0], each.debates, each.raised, each.taken_up) for each in await self.listed()]


async def list_all(patterns: Patterns, tenant: str = "acme") -> list[tuple[str, int]]:
    found, _ = await patterns.list_page(
        tenant, text="", domain="", only_successful=False, after=None, size=200
    )
    return [(each.examples[0], each.debates) for each in found]


FIRST = record("deb-1", issue("No rollback."), issue("No cost.", REJECTED))
SECOND = record("deb-2", issue("Rollback?", REJECTED), issue("A secret."), at=2000)
ONE = [("No rollback.", 1, 1, 1), ("No cost.", 1, 1, 0)]
BOTH = [("Rollback?", 2, 2, 1), ("A secret.", 1, 1, 1), ("No cost.", 1, 1, 0)]
