"""What the engine and the API need of a format. The formats themselves are passed in."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from google.protobuf.message import Message
from msgspec import Struct, field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.spec import DEFAULT_LIMITS
from parley.orchestrator.model.tasks import Activity
from parley.runtime.contract_settings import check_settings
from parley.runtime.validation import Violations
from parley.v1.debate_pb2 import Debate as DebateMessage
from parley.v1.debate_pb2 import DebateEstimate, DebateLimits, DebateSpec, Outcome
from parley.v1.event_pb2 import DebateCreated


class UnknownFormatError(ValueError):
    """No format has this name and version."""


class AnswerPart(Struct, frozen=True):
    """A part of an answer for people. A part without content is left out.

    Attributes:
        title: Empty for the answer itself, which comes first.
        text: CommonMark.
        items: A list instead of a text.
        quoted: Whether an agent wrote it, rather than the format.
        is_process: Whether it says how the answer came about: it is read by those who ask for that, and in the report.
        is_dissent: Whether it says only what the verdict's dissent says too, but without a limit of its length.
    """

    title: str
    text: str = ""
    items: Sequence[str] = ()
    quoted: bool = True
    is_process: bool = False
    is_dissent: bool = False


NOT_ASKED: Final = "No agent was asked whether it agrees with the answer."


class Verdict(Struct, frozen=True):
    """What a debate decided, for people: plain sentences with the names of agents. What is empty is left out.

    Attributes:
        answer: The text whose first sentence says what was decided; empty: the answer.
        decision: Who decided it, and how clearly.
        confidence: How sure the decision is, if a format says it in its own words.
        dissent: Who disagrees, and why; a sentence or two each.
        no_dissent: What is said if no agent disagrees: who was asked.
        dissenters: The ids of those agents.
        by_positions: Whether who takes another position in the end disagrees too, since no agent voted on the answer.
        votes: Who voted for it, such as `two of three votes and the judge`, if a vote of the agents decided.
    """

    answer: str = ""
    decision: str = ""
    confidence: str = ""
    dissent: Sequence[str] = ()
    no_dissent: str = NOT_ASKED
    dissenters: Collection[str] = ()
    by_positions: bool = False
    votes: str = ""


def _description_only(debate: DebateMessage) -> Iterator[AnswerPart]:
    yield AnswerPart("", debate.outcome.description)


def _check_no_rule(_violations: Violations, _settings: Message, _agents: int) -> None:
    pass


def _check_no_name(_violations: Violations, _settings: Message, _agents: Collection[str]) -> None:
    pass


def _complete_nothing(_settings: Message, _given: Message) -> None:
    pass


def _is_analysed(_spec: DebateSpec) -> bool:
    return True


class Settings(Struct, frozen=True):
    """The settings of a format, one message of `DebateSpec.format_settings`.

    Attributes:
        name: The field there.
        defaults: The message with every field set. Fields that a specification leaves unset get these values.
        demonstration: The defaults for debates on a very small model; None: the same.
        check_rules: Notes the fields, below `spec.NAME`, that break a rule between fields, or with the number of agents. Ranges are
            in the contract.
        check_names: Notes the fields that name an agent that is not among those that debate.
        complete: Sets, in settings with their defaults, the fields whose default follows from what was given.
    """

    name: str
    defaults: Message
    check_rules: Callable[[Violations, Message, int], None] = _check_no_rule
    check_names: Callable[[Violations, Message, Collection[str]], None] = _check_no_name
    demonstration: Message | None = None
    complete: Callable[[Message, Message], None] = _complete_nothing

    def check(self, violations: Violations, given: Message, agents: int) -> None:
        """Note every field that is out of its range or breaks a rule; so many agents debate."""
        check_settings(violations, f"spec.{self.name}", given)
        self.check_rules(violations, given, agents)

    def with_defaults(self, given: Message | None, *, is_demonstration: bool = False) -> Message:
        """Return the settings with defaults for fields that are unset or 0."""
        defaults = (
            self.demonstration if is_demonstration and self.demonstration is not None else self.defaults
        )
        settings = type(defaults)()
        settings.CopyFrom(defaults)
        if given is not None:
            settings.MergeFrom(given)
            self.complete(settings, given)
        return settings


class Subject(Struct, frozen=True):
    """Another debate that debates of a format are about. It must be completed. It is read when they are accepted.

    Attributes:
        debate_id: Returns its id from a checked specification.
        apply: Sets a question and the needed content of that debate in a specification that is being created.
    """

    debate_id: Callable[[DebateSpec], str]
    apply: Callable[[DebateSpec, DebateMessage], None]


class Format(Struct, frozen=True):
    """An order of phases, with a name and a version.

    A debate ends with the version that it started with: its prompts and its order of steps never change after a release.

    Attributes:
        run: Runs a debate to its outcome.
        settings: None for a format that has none.
        limits: The limits of a debate that its specification leaves unset.
        debater_sections: Prompts that the role of a debating agent must have.
        judge_sections: Prompts that the judge's role must have.
        concurrency: Labels of its tasks. A specification may set how many calls of each label run at a time.
        activities: Its phases, in the order in which a report shows their contributions.
        answer: Yields the answer of a completed debate with all its parts.
        estimate: Returns what a debate is expected to take, of its complete first event and of how many characters research may find
            for it at most; None if that cannot be said.
        verdict: Returns what a completed debate decided; None if its debates decide nothing.
        subject: The other debate that its debates are about; None if they are about a question.
        fallback_role: The role whose prompts an agent gets if its own role lacks them; empty: they are required.
        is_judged: Whether the judge takes part.
        is_recorded: Whether its outcomes are sent to ratings and memory, and what they rest on can be analysed.
        is_analysed: Returns whether debates with this specification are analysed if it does not say so itself.
    """

    name: str
    version: int
    run: Callable[[Debate], Awaitable[Outcome]]
    settings: Settings | None = None
    limits: DebateLimits = field(default_factory=lambda: DEFAULT_LIMITS)
    debater_sections: frozenset[str] = frozenset({"system"})
    judge_sections: frozenset[str] = frozenset({"system"})
    concurrency: frozenset[str] = frozenset()
    activities: tuple[Activity, ...] = ()
    answer: Callable[[DebateMessage], Iterable[AnswerPart]] = _description_only
    estimate: Callable[[DebateCreated, int], DebateEstimate] | None = None
    verdict: Callable[[DebateMessage], Verdict] | None = None
    subject: Subject | None = None
    fallback_role: str = ""
    is_judged: bool = True
    is_recorded: bool = True
    is_analysed: Callable[[DebateSpec], bool] = _is_analysed

    @property
    def id(self) -> str:
        """`name@version`."""
        return f"{self.name}@{self.version}"


class LateFormat(Struct, frozen=True):
    """A format that is imported when it is first needed; `load` does that."""

    name: str
    version: int
    load: Callable[[], Format]

    @property
    def id(self) -> str:
        """`name@version`."""
        return f"{self.name}@{self.version}"


class Formats:
    """The formats that a replica knows."""

    def __init__(self, formats: Iterable[Format | LateFormat]) -> None:
        """Register these. The name of the first one is the default."""
        self._by_id: dict[str, Format | LateFormat] = {each.id: each for each in formats}
        latest: dict[str, Format | LateFormat] = {}
        for each in self._by_id.values():
            known = latest.get(each.name)
            if known is None or known.version < each.version:
                latest[each.name] = each
        self._latest: Final[Mapping[str, str]] = {name: each.id for name, each in latest.items()}

    def __iter__(self) -> Iterator[Format]:
        """Yield all formats, in every version; each is imported when it is its turn."""
        return map(self._load, tuple(self._by_id))

    def all(self) -> tuple[Format, ...]:
        """Return all formats, in every version."""
        return tuple(self)

    def names(self) -> tuple[str, ...]:
        """Return the names of all formats, without versions."""
        return tuple(sorted(self._latest))

    def ids(self, name: str) -> tuple[str, ...]:
        """Return the ids of all versions of a format."""
        return tuple(each.id for each in self._by_id.values() if each.name == name)

    def default(self) -> str:
        """Return the name of the default format."""
        return next(iter(self._latest))

    def get(self, name: str) -> Format:
        """Return the format with this name, and this version or else the latest.

        Raise UnknownFormatError if no format has this name; the message lists the known names.
        """
        found = self.find(name) or self.find(self._latest.get(name, ""))
        if found is None:
            raise UnknownFormatError(f"unknown format {name!r}; known formats: {', '.join(self.names())}")
        return found

    def settings(self, name: str) -> Settings | None:
        """Return the settings in this field of a specification, or None. Settings are mostly named as their format."""
        ids = sorted(self._by_id, key=lambda each: self._by_id[each].name != name)
        having = (each.settings for each in map(self._load, ids) if each.settings is not None)
        return next((each for each in having if each.name == name), None) if name else None

    def find(self, name: str) -> Format | None:
        """Return the format with this name and version, or None."""
        return self._load(name) if name in self._by_id else None

    def _load(self, name: str) -> Format:
        found = self._by_id[name]
        if isinstance(found, LateFormat):
            found = self._by_id[name] = found.load()
        return found
