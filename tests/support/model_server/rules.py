"""Rules: which calls get which answer, fault or latency."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from tests.support.model_server.faults import TEXT_FAULTS, Fault
from tests.support.model_server.latency import Latency
from tests.support.model_server.tools import tool_results_of, tools_of


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One request as it came in.

    `number` counts the server's calls from 1; `occurrence` counts, from 1, those with the same path, model and
    prompt; `prompt` is every text of the request in order, one a line; `started` is of `time.monotonic`.
    """

    number: int
    path: str
    model: str
    prompt: str
    digest: str
    occurrence: int
    streamed: bool
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    started: float

    @property
    def has_text(self) -> bool:
        """Whether this call is answered with a text (and not with vectors or a list of models)."""
        return self.path in {"/v1/responses", "/v1/chat/completions"}

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that the request offers; none where it forbids their use."""
        return () if self.body.get("tool_choice") == "none" else tools_of(self.body)

    @property
    def tool_results(self) -> tuple[str, ...]:
        """What tools have answered so far, in order."""
        return tool_results_of(self.body)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of one of the request's tools, with its arguments by name."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """An answer that calls tools; `text` may stand before them."""

    calls: Sequence[ToolCall]
    text: str = ""


Json = Mapping[str, Any] | Sequence[Any] | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Reasoned:
    """An answer that the model reasoned for, beside its text; `hidden` reasoning is paid for and not told."""

    reasoning: str
    answer: "str | ToolCalls | Json" = ""
    hidden: bool = False


Answer = str | ToolCalls | Reasoned | Json | Callable[[Call], "str | ToolCalls | Reasoned | Json"]
"""A text, a value that is sent as JSON text, tool calls, one of these after reasoning, or a function of the call that
returns one."""


@dataclass(frozen=True, slots=True)
class Match:
    """Conditions on a call; all that are given must hold, none given is every call.

    `path` such as `/v1/responses`; `prompt` is a part of the prompt; `call` is the server's nth call and
    `occurrence` the nth of its prompt, both from 1; `header` is a name and its value; `tools`: whether any may
    be called; `tool_results`: how many are there.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    model: str | None = None
    path: str | None = None
    prompt: str | None = None
    call: int | None = None
    occurrence: int | None = None
    header: tuple[str, str] | None = None
    streamed: bool | None = None
    tools: bool | None = None
    tool_results: int | None = None

    def holds(self, call: Call) -> bool:
        """Tell whether the call meets every condition."""
        return (
            (self.model is None or self.model == call.model)
            and (self.path is None or self.path == call.path)
            and (self.prompt is None or self.prompt in call.prompt)
            and (self.call is None or self.call == call.number)
            and (self.occurrence is None or self.occurrence == call.occurrence)
            and (self.header is None or call.headers.get(self.header[0]) == self.header[1])
            and (self.streamed is None or self.streamed == call.streamed)
            and (self.tools is None or self.tools == bool(call.tools))
            and (self.tool_results is None or self.tool_results == len(call.tool_results))
        )


ANY = Match()


class _NoAnswer:
    """Tells a rule without an answer from one whose answer is JSON null."""

    def __repr__(self) -> str:
        return "NO_ANSWER"


NO_ANSWER = _NoAnswer()


@dataclass(frozen=True, slots=True)
class Rule:
    """What the calls that `match` get: an answer, a fault (of that answer, if it is one of text), a latency.

    A stream ends only once `ends_after` is set; all of its text goes out before. The rule lets its first `after` calls pass to the rules behind it and then takes `times` of them (None: all).
    Answers and faults of text never take calls that have no text.
    """

    match: Match = ANY
    answer: Answer | _NoAnswer = NO_ANSWER
    fault: Fault | None = None
    latency: Latency | None = None
    times: int | None = None
    after: int = 0
    ends_after: asyncio.Event | None = None

    def __post_init__(self) -> None:
        if isinstance(self.answer, _NoAnswer) and self.fault is None and self.latency is None:
            raise ValueError("a rule needs an answer, a fault or a latency")

    def takes(self, call: Call) -> bool:
        """Tell whether the call is one this rule could have something for."""
        if not call.has_text:
            only_text = self.fault is None and self.latency is None
            if only_text or (self.fault is not None and self.fault.kind in TEXT_FAULTS):
                return False
        return self.match.holds(call)


class RuleBook:
    """Rules in order, with how many calls each has seen."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules: tuple[Rule, ...] = tuple(rules)
        self._seen = [0] * len(self.rules)

    def pick(self, call: Call) -> Rule | None:
        """Return the first rule that takes this call, and count it as seen by every rule that was asked."""
        for index, rule in enumerate(self.rules):
            if not rule.takes(call):
                continue
            self._seen[index] += 1
            turn = self._seen[index] - rule.after
            if turn > 0 and (rule.times is None or turn <= rule.times):
                return rule
        return None


_MATCH = TypeAdapter(Match)
_FAULT = TypeAdapter(Fault)
_LATENCY = TypeAdapter(Latency)
_TOOL_CALLS = TypeAdapter(ToolCalls)
_REASONED = TypeAdapter(Reasoned)
_FIELDS = frozenset({"match", "answer", "fault", "latency", "times", "after"})


def rule_from_json(item: Mapping[str, Any]) -> Rule:
    """Read a rule from JSON with the fields' own names; an answer `{"tool_calls": {"calls": [...]}}` calls tools,
    and `{"reasoned": {"reasoning": "...", "answer": "..."}}` comes after reasoning.

    Raises ValueError, with the field, for what is unknown or of the wrong type.
    """
    if unknown := set(item) - _FIELDS:
        raise ValueError(f"a rule has no field {min(unknown)!r}; it has {', '.join(sorted(_FIELDS))}")
    answer: Any = item.get("answer", NO_ANSWER)
    try:
        if isinstance(answer, Mapping) and set(answer) == {"tool_calls"}:
            answer = _TOOL_CALLS.validate_python(answer["tool_calls"])
        elif isinstance(answer, Mapping) and set(answer) == {"reasoned"}:
            answer = _REASONED.validate_python(answer["reasoned"])
        return Rule(
            match=_MATCH.validate_python(item.get("match", {})),
            answer=answer,
            fault=_FAULT.validate_json(json.dumps(item["fault"])) if "fault" in item else None,
            latency=_LATENCY.validate_python(item["latency"]) if "latency" in item else None,
            times=item.get("times"),
            after=item.get("after", 0),
        )
    except ValidationError as problem:
        first = problem.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"{place}: {first['msg']}") from problem
