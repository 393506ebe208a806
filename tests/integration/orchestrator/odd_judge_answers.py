"""How a judge's answer deviates from its form in 36 ways, and what has to come of each."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.integration.orchestrator.lenient_answers import WHOLE
from tests.support.model_server import Call
from tests.support.model_server.wire import find_schema

_TEXT: Final = json.dumps(WHOLE, indent=2)
_SAYS: Final = "Keep one process."


@dataclass(frozen=True)
class OddAnswer:
    """What a judge writes, every time that it is asked.

    Attributes:
        said: Its text; or what makes it of the call.
        is_whole: Whether the outcome is that of an answer of the right form.
        keeps: What the answer has to hold. Empty: nothing that was said is an answer, and an agent's work stands in for it.
    """

    said: str | Callable[[Call], str]
    is_whole: bool = False
    keeps: str = _SAYS


def make_whole_answer(said: str) -> OddAnswer:
    return OddAnswer(said, is_whole=True)


def _stands_in(said: str | Callable[[Call], str]) -> OddAnswer:
    return OddAnswer(said, keeps="")


def _echo_schema(call: Call) -> str:
    schema = find_schema(call.body)
    return json.dumps(schema) if schema else call.prompt.rpartition("JSON Schema:\n")[2].split("\n")[0]


def _rename(**names: str) -> str:
    return json.dumps({names.get(key, key): value for key, value in WHOLE.items()})


def _xml() -> str:
    inner = "".join(f"  <{key}>{json.dumps(value)}</{key}>\n" for key, value in WHOLE.items())
    return f"<answer>\n{inner}</answer>"


def _yaml() -> str:
    return "\n".join(f"{key}: {json.dumps(value)}" for key, value in WHOLE.items())


_MARKDOWN: Final = f"""# Decision

{_SAYS} It is the simplest thing that holds, and none of the criticism speaks against it in the end.

```{{language}}
{{code}}
```

Begin with that, and measure. I am 80 % sure."""
_LONG: Final = f"{_SAYS} " + "It is simple, and simple things last. " * 800

ODD_ANSWERS: Final[Mapping[str, OddAnswer]] = {
    "JSON in a fence": make_whole_answer(f"```json\n{_TEXT}\n```"),
    "JSON with prose around it": make_whole_answer(
        f"I have weighed {{all}} of it.\n\n{_TEXT}\n\nAsk if you need more."
    ),
    "a JSON example in Markdown": OddAnswer(_MARKDOWN.format(language="json", code='{"service": "one"}')),
    "an example with the form's key in Markdown": OddAnswer(
        _MARKDOWN.format(language="json", code='{"description": "orders", "confidence": 1}')
    ),
    "JavaScript in Markdown": OddAnswer(
        _MARKDOWN.format(language="js", code="if (a) { run({ workers: 1 }) } else { stop() }")
    ),
    "XML": OddAnswer(_xml()),
    "YAML": OddAnswer(_yaml()),
    "CSV": OddAnswer(f'agent,score,"why, in a word"\nA,9,"{_SAYS}"\nB,4,{{too much}}'),
    "a trailing comma": make_whole_answer(_TEXT[:-2] + ",\n}"),
    "single quotes": make_whole_answer(str(dict(WHOLE))),
    "JSON that breaks off": OddAnswer(_TEXT[: _TEXT.index("recommendations") + 4]),
    "JSON in a JSON text": make_whole_answer(json.dumps(_TEXT)),
    "two JSON objects": make_whole_answer(f'{_TEXT}\n{{"note": "that is all"}}'),
    "an array of the parts": make_whole_answer(json.dumps([{key: value} for key, value in WHOLE.items()])),
    "JSON lines": make_whole_answer("\n".join(json.dumps({key: value}) for key, value in WHOLE.items())),
    "JSON with comments": make_whole_answer(_TEXT.replace('"confidence"', '// in percent\n  "confidence"')),
    "a byte order mark": make_whole_answer(f"\ufeff{_TEXT}"),
    "keys in camelCase": make_whole_answer(
        _rename(open_questions="openQuestions", unfulfilled_requirements="unfulfilledRequirements")
    ),
    "keys with spaces": make_whole_answer(
        _rename(open_questions="Open questions", description="Description")
    ),
    "the answer under a name of its own": make_whole_answer(_rename(description="final_answer")),
    "nested under result": make_whole_answer(json.dumps({"status": "done", "result": WHOLE})),
    "a call of a tool": make_whole_answer(json.dumps({"name": "submit", "arguments": _TEXT})),
    "a call of a tool without an answer": _stands_in(
        '{"name": "search", "arguments": {"query": "processes"}}'
    ),
    "numbers as text, and lists of null": make_whole_answer(
        json.dumps(
            {
                **WHOLE,
                "confidence": "80 %",
                "scores": {"A": "9", "B": "4"},
                "tradeoffs": ["speed for ease", None],
            }
        )
    ),
    "an empty answer": _stands_in(""),
    "a blank answer": _stands_in(" \n\t\n"),
    "only reasoning": _stands_in("<think>It may be one process. Or two.</think>"),
    "reasoning without an end": _stands_in("<think>It may be one process. Or two. Let me see"),
    "a whole answer in reasoning without an end": make_whole_answer(f"<think>It is one process. {_TEXT}"),
    "a stray end tag": make_whole_answer(f"{_TEXT}\n</think>"),
    "a refusal": _stands_in("I'm sorry, but I can't help with that."),
    "a page of an error": _stands_in(
        "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head></html>"
    ),
    "a page of HTML": OddAnswer(f"<html><body><h1>{_SAYS}</h1><p>It is simple.</p></body></html>"),
    "very long prose": OddAnswer(_LONG),
    "another language": OddAnswer("一个进程就够了。", keeps="一个进程就够了。"),
    "nothing but emoji": _stands_in("👍🤷🎉"),
    "the form itself": _stands_in(_echo_schema),
    "a form of nothing": _stands_in('{"type": "object"}'),
    "only code": OddAnswer("```python\nrun(processes=1)\n```", keeps="run(processes=1)"),
    "numbers for everything": _stands_in(json.dumps(dict.fromkeys(WHOLE, 1))),
    "its prompt again": _stands_in(lambda call: call.prompt),
    "confidence beyond all": OddAnswer(json.dumps({**WHOLE, "confidence": 140})),
}
