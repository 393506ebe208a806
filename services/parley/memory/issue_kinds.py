"""What a debate contributes to critique patterns, and what a pattern counts. Nothing here waits or writes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from msgspec import Struct

from parley.memory.embedding import Embedding
from parley.memory.stored_vectors import Matrix, encode_vector, find_likeness
from parley.storage.ports import Fields
from parley.v1.critique_pb2 import ISSUE_STATUS_TAKEN_UP
from parley.v1.memory_pb2 import CritiquePattern, RecordedIssue

SAME_KIND: Final = 0.45
"""The cosine from which two issues are of one kind; docs/architecture/memory.md has the figures."""
MAX_ISSUES: Final = 64
"""Of a debate that are counted; a record has the most severe ones first."""
MAX_DEBATES: Final = 500
"""That a pattern counts, the latest ones."""
MAX_CHARACTERS: Final = 500
"""Of an example."""
TALLIES: Final = ("tallies", *(f"tallies_{number}" for number in range(1, 40)))
"""Fields of a pattern, which share the debates that it counts: so that to count one more writes few of them again.

They are filled in turn, since versions before read the first one alone, or the first 16.
"""
_MAX_TALLIES: Final = dict.fromkeys(TALLIES, 12) | {TALLIES[0]: 32}
"""Of each field. All together have room for more debates than a pattern counts; what versions before add to the first 16 comes on top."""
_MAX_EXAMPLES: Final = 3
_MAX_CRITICS: Final = 8
_MAX_NAME: Final = 128


def shorten(text: str) -> str:
    """Return as much of an issue as is compared and kept."""
    return text[:MAX_CHARACTERS]


class Kind(Struct, frozen=True, eq=False):
    """A known pattern: its id, and the vector of the issue that stands for it."""

    pattern: str
    vector: Matrix


def assign_kinds(issues: Sequence[Matrix], known: Sequence[Kind]) -> Iterator[str]:
    """Yield the pattern of each issue, by its vector: the nearest one of its kind, or a new one that the next issues may join."""
    kinds = list(known)
    likeness_to_known = find_likeness(issues, [kind.vector for kind in known])
    for vector, to_known in zip(issues, likeness_to_known, strict=True):
        likeness = to_known.tolist()
        if added := [kind.vector for kind in kinds[len(known) :]]:
            likeness += find_likeness([vector], added)[0].tolist()
        best = max(likeness, default=-1.0)
        if best >= SAME_KIND:
            yield kinds[likeness.index(best)].pattern
        else:
            kinds.append(Kind(uuid4().hex, vector))
            yield kinds[-1].pattern


def list_parts(
    issues: Sequence[RecordedIssue], meanings: Sequence[Embedding], known: Sequence[Kind], at: int
) -> list[dict[str, Any]]:
    """Return what a debate contributes, a part for each pattern; `at` is when it was concluded, in seconds since 1970."""
    parts: dict[str, dict[str, Any]] = {}
    kinds = assign_kinds([each.vector for each in meanings], known)
    for issue, meaning, pattern in zip(issues, meanings, kinds, strict=True):
        part = parts.setdefault(
            pattern,
            {
                "pattern": pattern,
                "text": shorten(issue.issue.text),
                "model": meaning.model,
                "vector": encode_vector(meaning.vector),
                "tally": {"at": at, "raised": 0, "taken_up": 0, "severities": [], "critics": {}},
            },
        )
        _count(part["tally"], issue)
    return list(parts.values())


def _count(tally: dict[str, Any], issue: RecordedIssue) -> None:
    tally["raised"] += 1
    tally["taken_up"] += issue.status == ISSUE_STATUS_TAKEN_UP
    if issue.issue.HasField("severity"):
        tally["severities"].append(issue.issue.severity)
    critic = issue.critic_agent_id[:_MAX_NAME]
    tally["critics"][critic] = tally["critics"].get(critic, 0) + 1


def add_part(fields: Fields, debate: str, part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pattern that counts a debate; one that counts it already stays as it is."""
    name = [*_find_tallies(fields, debate), _find_room(fields)][0]
    counted = {**fields, name: {**_mapping(fields.get(name, {})), debate: part["tally"]}}
    if (surplus := len(_list_tallies(counted)) - MAX_DEBATES) > 0:
        for oldest in oldest_debates(counted)[:surplus]:
            counted |= _remove_tally(counted, oldest)
    others = [each for each in _list(fields["examples"]) if each["debate"] != debate]
    examples = [{"debate": debate, "text": part["text"], "at": part["tally"]["at"]}, *others]
    examples.sort(key=lambda each: (-each["at"], each["debate"]))
    return {**counted, "examples": examples[:_MAX_EXAMPLES]}


def _find_room(fields: Fields) -> str:
    """Return the first field that has room for one more tally."""
    for name, most in _MAX_TALLIES.items():
        if len(_mapping(fields.get(name, {}))) < most:
            return name
    return TALLIES[-1]


def _find_tallies(fields: Fields, debate: str) -> list[str]:
    """Return the fields that have a debate's tally: one, or two if replicas of two versions counted it."""
    return [name for name in TALLIES if name in fields and debate in _mapping(fields[name])]


def _remove_tally(fields: Fields, debate: str) -> dict[str, Any]:
    """Return the fields that change if a debate is not counted any more."""
    return {
        name: {key: each for key, each in _mapping(fields[name]).items() if key != debate}
        for name in _find_tallies(fields, debate)
    }


def _list_tallies(fields: Fields) -> dict[str, Any]:
    """Return the tallies of all debates that a pattern counts."""
    tallies: dict[str, Any] = {}
    for name in TALLIES:
        if name in fields:
            tallies |= _mapping(fields[name])
    return tallies


def start_pattern(tenant: str, domain: str, debate: str, part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a new pattern that a debate's issue stands for, without its count, key and version."""
    return {
        "tenant": tenant,
        "domain": domain,
        "started": part["tally"]["at"],
        "examples": [],
        **stand_for(debate, part),
    }


def stand_for(debate: str, part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that name the issue by whose meaning a pattern is known."""
    return {"leader": debate, "model": part["model"], "vector": part["vector"]}


def remove_part(fields: Fields, debate: str) -> dict[str, Any]:
    """Return a pattern without what it has of a debate."""
    examples = [each for each in _list(fields["examples"]) if each["debate"] != debate]
    return {**fields, **_remove_tally(fields, debate), "examples": examples}


def oldest_debates(fields: Fields) -> list[str]:
    """Return the debates that a pattern counts, oldest first."""
    tallies = _list_tallies(fields)
    return sorted(tallies, key=lambda each: (tallies[each]["at"], each))


def join_twins(patterns: Sequence[tuple[Kind, Fields]]) -> list[tuple[Kind, Fields]]:
    """Return patterns of one domain and model, those together that are one kind, as the first of them.

    Two replicas that start the same kind at the same time make two of it.
    """
    joined: list[tuple[Kind, Fields]] = []
    for kind, fields in patterns:
        (likeness,) = find_likeness([kind.vector], [first.vector for first, _ in joined])
        if joined and likeness.max() >= SAME_KIND:
            place = int(likeness.argmax())
            first, its = joined[place]
            joined[place] = first, _join(its, fields)
        else:
            joined.append((kind, fields))
    return joined


def _join(one: Fields, other: Fields) -> Fields:
    tallies = _list_tallies(one)
    for debate, tally in _list_tallies(other).items():
        tallies[debate] = _add_tallies(tallies[debate], tally) if debate in tallies else tally
    latest = sorted(tallies, key=lambda each: (tallies[each]["at"], each))[-MAX_DEBATES:]
    examples = sorted(
        _list(one["examples"]) + _list(other["examples"]), key=lambda each: (-each["at"], each["debate"])
    )
    first, *rest = TALLIES
    return {
        **one,
        **{each: {} for each in rest},
        first: {each: tallies[each] for each in latest},
        "examples": examples[:_MAX_EXAMPLES],
    }


def _add_tallies(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **one,
        "raised": one["raised"] + other["raised"],
        "taken_up": one["taken_up"] + other["taken_up"],
        "severities": [*one["severities"], *other["severities"]],
        "critics": dict(Counter(one["critics"]) + Counter(other["critics"])),
    }


def to_pattern(pattern: str, fields: Fields) -> CritiquePattern:
    """Return a stored pattern as it is listed."""
    tallies = list(_list_tallies(fields).values())
    severities, critics = list[int](), dict[str, int]()
    for each in tallies:
        severities += each["severities"]
        for agent, raised in each["critics"].items():
            critics[agent] = critics.get(agent, 0) + raised
    found = CritiquePattern(
        pattern_id=pattern,
        domain=str(fields["domain"]),
        examples=[each["text"] for each in _list(fields["examples"])],
        debates=len(tallies),
        raised=sum(each["raised"] for each in tallies),
        taken_up=sum(each["taken_up"] for each in tallies),
        severity=sum(severities) / len(severities) if severities else None,
    )
    found.latest_at.FromSeconds(max(each["at"] for each in tallies))
    for agent, raised in sorted(critics.items(), key=lambda each: (-each[1], each[0]))[:_MAX_CRITICS]:
        found.critics.add(agent_id=agent, raised=raised)
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value  # type: ignore[no-any-return]


def _list(value: Any) -> list[Any]:
    return list(value)
