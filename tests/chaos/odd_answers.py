"""Answers that no model should give, made of the right ones: odd numbers, wrong types, broken texts, words meant for another step."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.model_server.schema_instance import instance
from tests.support.scripted_gateway import ScriptedGateway, StepRequest

_CASE: Final = re.compile(r"case (\d+)\b")
_NUMBERS: Final = (
    *(
        "0",
        "-1",
        "1",
        "7",
        "2.5",
        "101",
        "0.1",
        "1e308",
        "-1e308",
        "1e999",
        "-1e999",
        "NaN",
        "Infinity",
        "-0.0",
    ),
    *("9" * 309, "-" + "9" * 309, "9" * 4000, "9" * 5000, "2147483648", "18446744073709551616", "5e-324"),
)
_TEXTS: Final = (
    *(
        "",
        " ",
        "1,5",
        "8/10",
        "80%",
        "yes",
        "null",
        "agent",
        "A",
        "Z",
        "ZZ",
        "B.2",
        "A.999",
        "-",
        "[1, 2]",
        "{}",
    ),
    *(
        "\ud800",
        "a\udfffb",
        "\u202e",
        "\x00",
        "\r\n\x85",
        "🙂" * 40,
        "x" * 100_000,
        "word " * 20_000,
        "\n" * 5000,
    ),
    *(">>>\n<<<", "Position: none", "{question}", "%s%n", "```json\n{}\n```", "9" * 5000, "# " * 500),
)
_RAW: Final = (
    *("null", "true", "false", "[]", "{}", "[[]]", "[null]", '{"a": 1, "a": 2}', '[{"text": null}]', '[""]'),
    *("[" * 60 + "]" * 60, "[" * 3000 + "]" * 3000, '{"a":' * 150 + "1" + "}" * 150),
)
_PLAIN: Final = (
    *(
        "Position:",
        "Position: ",
        "POSITION: x\nPosition: y",
        "Ready: yes, 999999 %",
        "Ready: no, 1e999 %",
        "Ready: maybe",
    ),
    *(
        "🤷",
        '{"type": "object"}',
        "<html><title>502 Bad Gateway</title></html>",
        "<answer>{}</answer>",
        "- a: {b}",
    ),
    *('# Yes\n\n```json\n{"service": "one"}\n```', '{"name": "search", "arguments": {}}'),
    *("I cannot help with that.", "[1]" * 900, "Ready: yes, " + "9" * 400 + " %\nPosition: " + "p" * 9000),
)


@dataclass
class OddModels:
    """Lets the models of a scripted gateway answer oddly at random steps.

    Attributes:
        seed: Makes the same answers for the same cases.
        mended: The cases whose models answer well from now on.
        shapes: The shapes that were answered oddly so far.
    """

    seed: int
    mended: set[int] = field(default_factory=set)
    shapes: set[str] = field(default_factory=set)
    _others: list[str] = field(default_factory=list)

    def gateway(self) -> ScriptedGateway:
        """Return a gateway whose models answer so."""
        gateway = ScriptedGateway()
        gateway.judge = lambda _schema: ""  # what is right follows from the schema alone
        gateway.alter = self._answer
        return gateway

    def _answer(self, asked: StepRequest, right: str) -> str:
        case = case_of(asked.prompt)
        dice = random.Random(f"{self.seed}/{case}/{asked.step}/{asked.attempt}")
        if asked.schema:
            right = json.dumps(instance(json.loads(asked.schema), dice.randrange(1000)))
        share = random.Random(f"{self.seed}/{case}").choice((0.05, 0.2, 0.5, 1.0))
        if case in self.mended or dice.random() >= share:
            self._remember(right)
            return right
        self.shapes.add(asked.shape or "text")
        return make_odd_text(dice, right, self._others)

    def _remember(self, right: str) -> None:
        if len(self._others) < 200:
            self._others.append(right)


def case_of(text: str) -> int:
    """Return the number of the case that a question names."""
    found = _CASE.search(text)
    assert found is not None, text[:200]
    return int(found[1])


def make_odd_text(dice: random.Random, right: str, others: list[str]) -> str:
    """Return an odd answer in place of a right one; `others` are right answers of other steps."""
    ways: list[Callable[[], str]] = [
        lambda: _change(dice, right),
        lambda: _change(dice, right),
        lambda: _change(dice, right),
        lambda: dice.choice(_RAW),
        lambda: dice.choice(_NUMBERS),
        lambda: dice.choice(_PLAIN),
        lambda: _sendable(dice.choice(_TEXTS)),
        lambda: right[: dice.randrange(len(right) + 1)],
        lambda: dice.choice(others or [right]),
        lambda: f"[{right}, {right}]",
        lambda: json.dumps(right),
    ]
    return dice.choice(ways)()


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _change(dice: random.Random, right: str) -> str:
    """Return the JSON text with some of its parts made odd; another text with something odd after it."""
    try:
        value = json.loads(right)
    except ValueError:
        return f"{right}\n{dice.choice(_PLAIN)}"
    raw: list[str] = []
    for _ in range(dice.choice((1, 1, 2, 4))):
        value = _change_part(dice, value, raw)
    text = json.dumps(value)
    for place, each in enumerate(raw):
        text = text.replace(f'"@{place}@"', each)
    return text


def _change_part(dice: random.Random, value: Any, raw: list[str]) -> Any:
    """Return a value with one part of it changed, however deep."""
    if isinstance(value, dict) and value and dice.random() < 0.9:
        key = dice.choice(list(value))
        if dice.random() < 0.15:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: _change_part(dice, value[key], raw)}
    if isinstance(value, list) and value and dice.random() < 0.6:
        place = dice.randrange(len(value))
        if dice.random() < 0.3:
            return [*value, *([value[place]] * dice.choice((1, 50)))]
        return [*value[:place], _change_part(dice, value[place], raw), *value[place + 1 :]]
    if dice.random() < 0.4:
        return dice.choice(_TEXTS)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    raw.append(dice.choice(_NUMBERS if is_number or dice.random() < 0.4 else _RAW))
    return f"@{len(raw) - 1}@"
