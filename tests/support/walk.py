"""Which functions and forms a text passes in one debate: the question to the first request for a proposal, the answer to stdout.

`python -m tests.support.walk` runs `parley debate` in this process, over a scripted model server, under a profile hook.
The hook notes each function of the services that takes or returns a value with the text, and the form of that value.

A form is the type of the innermost message, record or named tuple that contains the text, or `str` or `bytes`.
Not counted: lists, tuples and dicts around a form; other objects, such as a class that keeps the text in an attribute;
generated code; what carries a call within a process, as gRPC does unseen between two; and what does not lie between the question and the
answer, which is memory, convergence, ratings, configuration and the lines about who answers.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final
from unittest.mock import patch

from google.protobuf.message import Message

from parley.cli.__main__ import main
from tests.support.model_server import ModelServer
from tests.support.model_server.answers import make_up
from tests.support.model_server.rules import Call
from tests.support.model_server.wire import find_schema

_QUESTION: Final = "ZEBRAQUESTION"
_ANSWER: Final = "ZEBRAANSWER"
_SOURCES: Final = f"services{os.sep}parley{os.sep}"
_PROPOSAL: Final = "Write your proposal"
"""The judge is asked at the same moment: which request comes first is a matter of the machine."""
_MAX_DEPTH: Final = 4
_MAX_ITEMS: Final = 40
"""Of a list or dict. With the depth, it keeps the hook fast."""
_ROOMS_ASIDE: Final = ("memory/", "convergence/", "ratings/", "config/", "runtime/direct/")


@dataclass(frozen=True, slots=True)
class Passage:
    """A function that takes or returns the text in a form."""

    file: str
    function: str
    form: str

    @property
    def is_counted(self) -> bool:
        """Whether it lies between the question and the answer."""
        return not (
            self.file.startswith(_ROOMS_ASIDE)
            or "terminal/answering" in self.file
            or self.function == "_pass_bytes"  # the serializer of a handler
            or "Memory" in self.function
            or any(each in self.form for each in ("Recall", "Embed", "ListPatterns"))
        )


@dataclass(frozen=True, slots=True)
class Walk:
    """What a text passes, each once, in the order of its first passage."""

    files: tuple[str, ...]
    functions: tuple[str, ...]
    forms: tuple[str, ...]


@dataclass(slots=True)
class _Trace:
    """What the hook has seen of a text.

    Attributes:
        until: The walk ends with the first passage in this folder of a value with `last` in it. If it is empty, it does not end.
        aside: A form that is on no way to there: what is shown meanwhile.
        is_running: Whether the text exists and its walk has not ended. Only then does the hook look for it, which takes long.
    """

    text: str
    until: str = ""
    last: str = ""
    aside: str = ""
    is_running: bool = True
    passages: dict[Passage, None] = field(default_factory=dict)

    def note(self, code: CodeType, values: Iterable[Any]) -> None:
        """Note a function if one of these values contains the text."""
        file = code.co_filename.partition(_SOURCES)[2]
        for value in values:
            form = _form_of(value, self.text)
            passage = Passage(file, code.co_qualname.partition(".<locals>")[0], form)
            if not form or form == self.aside or not self.is_running:
                continue
            self.passages[passage] = None
            if self.until and passage.is_counted and file.startswith(self.until):
                self.is_running = not _form_of(value, self.last)

    def walk(self) -> Walk:
        """Return the walk to its end."""
        passages = [each for each in self.passages if each.is_counted]
        return Walk(
            tuple(dict.fromkeys(each.file for each in passages)),
            tuple(dict.fromkeys(f"{each.file} {each.function}" for each in passages)),
            tuple(dict.fromkeys(each.form for each in passages)),
        )


def _form_of(value: Any, text: str, depth: int = 0) -> str:
    """Return the form in which a value contains a text; empty if it does not."""
    kind = type(value)
    if isinstance(value, str):
        return "str" if text in value else ""
    if isinstance(value, bytes | bytearray):
        return "bytes" if text.encode() in value else ""
    if value is None or isinstance(value, int | float | type) or depth > _MAX_DEPTH:
        return ""
    if isinstance(value, Message):
        return f"message {kind.__name__}" if text.encode() in value.SerializeToString() else ""
    fields = [
        name
        for names in ("__struct_fields__", "__dataclass_fields__", "_fields")
        for name in getattr(kind, names, ())
    ]
    if fields and kind.__module__.startswith("parley."):
        contents = [getattr(value, name, None) for name in fields]
        name = f"{kind.__module__.removeprefix('parley.')}.{kind.__name__}"
        return name if _find_first_form(contents, text, depth + 2) else ""
    items = value.values() if isinstance(value, dict) else value
    return (
        _find_first_form(items, text, depth + 1)
        if isinstance(value, dict | list | tuple | set | frozenset)
        else ""
    )


def _find_first_form(values: Iterable[Any], text: str, depth: int) -> str:
    some = list(islice(list(values), _MAX_ITEMS))
    return next(filter(None, (_form_of(each, text, depth) for each in some)), "")


def measure_walks() -> tuple[Walk, Walk]:
    """Run a debate; return the question's walk to the first request for a proposal, and the answer's walk to stdout."""
    question = _Trace(_QUESTION, until="gateway/wire/", last=_PROPOSAL, aside="message WatchDebateResponse")
    answer = _Trace(_ANSWER, is_running=False)
    with tempfile.TemporaryDirectory() as folder, _model_server(answer) as url:
        variables = {
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "sk-of-the-walk",
            "PARLEY_MODEL": "m-1",
            "PARLEY_STORE": f"sqlite:///{folder}/data",
            "PARLEY_LOCAL_SERVERS": "off",
        }
        # The analysis follows the answer: what it reads is not on the way to stdout.
        Path(folder, "parley.yaml").write_text("debate:\n  analysis: false\n")
        with patch.dict(os.environ, variables), chdir(folder):
            _run_command((question, answer))
    return question.walk(), answer.walk()


@contextmanager
def _model_server(trace: _Trace) -> Iterator[str]:
    """Run a model server in a thread of its own; yield its base URL. The judge's answer contains the text of the trace."""
    loop, server = asyncio.new_event_loop(), ModelServer(answer=partial(_answer, trace))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result()
        yield server.base_url
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _answer(trace: _Trace, call: Call) -> str | dict[str, Any]:
    made = make_up(call, 24, states_position=True)
    if find_schema(call.body) is None:
        return made
    instance: dict[str, Any] = json.loads(made)
    if "description" in instance:
        instance["description"] = f"Take one service: {trace.text}."
        trace.is_running = True
    return instance


def _run_command(traces: Sequence[_Trace]) -> None:
    """Run `parley debate` in this process under the hook, which notes in each trace."""
    inside = threading.local()

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        source = frame.f_code.co_filename
        running = [trace for trace in traces if trace.is_running]
        if not running or event not in ("call", "return") or _SOURCES not in source or "_pb2" in source:
            return
        if getattr(inside, "hook", False):  # a property of ours, which the hook itself reads
            return
        inside.hook = True
        try:
            values = [argument] if event == "return" else _arguments_of(frame)
            for trace in running:
                trace.note(frame.f_code, values)
        finally:
            inside.hook = False

    question = f"Should we use one service? {_QUESTION}"
    arguments = ["parley", "debate", question, "--agents", "architect,security", "--rounds", "1"]
    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        with patch.object(sys, "argv", arguments), suppress(SystemExit):
            main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _arguments_of(frame: FrameType) -> list[Any]:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [frame.f_locals.get(name) for name in names if name not in ("self", "cls")]


def _describe(name: str, walk: Walk) -> str:
    counts = f"{len(walk.files)} files, {len(walk.functions)} functions, {len(walk.forms)} forms"
    return "".join(f"{line}\n" for line in (f"{name}: {counts}", *(f"  {form}" for form in walk.forms)))


if __name__ == "__main__":
    for name, walk in zip(("question", "answer"), measure_walks(), strict=True):
        sys.stderr.write(_describe(name, walk))
