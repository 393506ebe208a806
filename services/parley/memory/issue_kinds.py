"""What a debate contributes to critique patterns, and what a pattern counts. Nothing here waits or writes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from msgspec import Struct, convert, to_builtins

from parley.memory.embedding import Embedding
from parley.memory.stored_vectors import Matrix, encode_vector, find_likeness
from parley.memory.totals import Example, Tally, Totals, choose_examples, sum_up
from parley.storage.ports import Fields
from parley.v1.critique_pb2 import ISSUE_STATUS_TAKEN_UP
from parley.v1.memory_pb2 import RecordedIssue

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


class Part(Struct, frozen=True):
    """What a debate contributes to a pattern.

    Attributes:
        text: The first of its issues.
        model: Of the embedding of this one, and `vector` as it is stored.
    """

    pattern: str
    text: str
    model: str
    vector: str
    tally: Tally

    def create_example(self, debate: str) -> Example:
        """Return the example that it gives."""
        return Example(debate, self.text, self.tally.at)


def list_parts(
    issues: Sequence[RecordedIssue], meanings: Sequence[Embedding], known: Sequence[Kind], at: int
) -> list[Part]:
    """Return what a debate contributes, a part for each pattern; `at` is when it was concluded, in seconds since 1970."""
    by_pattern: dict[str, list[tuple[RecordedIssue, Embedding]]] = {}
    kinds = assign_kinds([each.vector for each in meanings], known)
    for issue, meaning, pattern in zip(issues, meanings, kinds, strict=True):
        by_pattern.setdefault(pattern, []).append((issue, meaning))
    return [
        Part(
            pattern,
            shorten(found[0][0].issue.text),
            found[0][1].model,
            encode_vector(found[0][1].vector),
            _count([issue for issue, _ in found], at),
        )
        for pattern, found in by_pattern.items()
    ]


def _count(issues: Sequence[RecordedIssue], at: int) -> Tally:
    return Tally(
        at,
        raised=len(issues),
        taken_up=sum(each.status == ISSUE_STATUS_TAKEN_UP for each in issues),
        severities=[each.issue.severity for each in issues if each.issue.HasField("severity")],
        critics=dict(Counter(each.critic_agent_id[:_MAX_NAME] for each in issues)),
    )


def add_parts(fields: Fields, parts: Mapping[str, Part]) -> dict[str, Any]:
    """Return a pattern that counts debates, by their ids; one that counts them already stays as it is."""
    counted = dict(fields)
    for debate, part in parts.items():
        name = [*_find_tallies(counted, debate), _find_room(counted)][0]
        counted[name] = {**_mapping(counted.get(name, {})), debate: to_builtins(part.tally)}
    if (surplus := len(_list_tallies(counted)) - MAX_DEBATES) > 0:
        for oldest in oldest_debates(counted)[:surplus]:
            counted |= _remove_tally(counted, oldest)
    others = [each for each in read_examples(fields) if each.debate not in parts]
    examples = choose_examples([*others, *(part.create_example(debate) for debate, part in parts.items())])
    return {**counted, "examples": to_builtins(list(examples))}


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


def start_pattern(tenant: str, domain: str, debate: str, part: Part) -> dict[str, Any]:
    """Return a new pattern that a debate's issue stands for, without its count, key and version."""
    return {
        "tenant": tenant,
        "domain": domain,
        "started": part.tally.at,
        "examples": [],
        **stand_for(debate, part),
    }


def stand_for(debate: str, part: Part) -> dict[str, Any]:
    """Return the fields that name the issue by whose meaning a pattern is known."""
    return {"leader": debate, "model": part.model, "vector": part.vector}


def remove_part(fields: Fields, debate: str) -> dict[str, Any]:
    """Return a pattern without what it has of a debate."""
    examples = [each for each in _list(fields["examples"]) if each["debate"] != debate]
    return {**fields, **_remove_tally(fields, debate), "examples": examples}


def oldest_debates(fields: Fields) -> list[str]:
    """Return the debates that a pattern counts, oldest first."""
    tallies = _list_tallies(fields)
    return sorted(tallies, key=lambda each: (tallies[each]["at"], each))


def read_totals(fields: Fields) -> Totals:
    """Return the sums of a stored pattern. Raise ValueError if it cannot be read."""
    return sum_up(convert(_list_tallies(fields), dict[str, Tally]), read_examples(fields))


def read_examples(fields: Fields) -> list[Example]:
    """Return the examples of a stored pattern. Raise ValueError if they cannot be read."""
    return convert(fields["examples"], list[Example])


def _mapping(value: Any) -> Mapping[str, Any]:
    return value  # type: ignore[no-any-return]


def _list(value: Any) -> list[Any]:
    return list(value)
