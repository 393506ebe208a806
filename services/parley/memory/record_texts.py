"""The texts of a record that are embedded: all by one request, since a model reads short texts together in about the time of one."""

from parley.memory.debate import search_text
from parley.memory.issue_kinds import MAX_ISSUES, shorten
from parley.memory.stands import shorten_question
from parley.v1.memory_pb2 import RecordDebateRequest


def list_texts(record: RecordDebateRequest) -> list[str]:
    """Return all of them; the first one is that of the debate."""
    return [search_text(record.debate), *list_question(record), *list_issues(record)]


def list_question(record: RecordDebateRequest) -> list[str]:
    """Return the question as the ledger of positions keeps it, if the record has stands."""
    return [shorten_question(record.debate.question)] if record.stands else []


def list_issues(record: RecordDebateRequest) -> list[str]:
    """Return the issues that count for patterns."""
    return [shorten(each.issue.text) for each in record.issues[:MAX_ISSUES]]
