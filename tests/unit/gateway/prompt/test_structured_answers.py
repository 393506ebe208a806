import json
import threading
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt.structured_answers import (
    AnswerShape,
    InvalidAnswer,
    bound_shape,
    parse_shape,
    read_answer,
    schema_instruction,
)

OPEN = json.dumps(
    {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "number"}}, "required": ["a"]}
)


@pytest.mark.parametrize(
    "answer",
    [
        '{"a": "x"}',
        '  {"a": "x"}\n',
        'Here it is:\n```json\n{"a": "x"}\n```\nBye.',
        'Sure! {"a": "x"} I hope this helps {really}.',
    ],
)
def test_an_object_is_found_among_words(answer: str) -> None:
    assert json.loads(parse_shape("s", OPEN).accept(answer)) == {"a": "x"}


@pytest.mark.parametrize(
    ("answer", "message", "is_json"),
    [
        ("I would rather not.", "not JSON", False),
        ('{"a": "x', "not JSON", True),
        ('{"a": true}', "a: True is not of type 'string'", True),
        ('{"b": [1, 2]}', "'a' is a required property", True),
        ("[]", "is not of type 'object'", True),
        ('{"a": "x", "n": NaN}', "not JSON", True),
        ('{"a": "x", "n": 1e999}', "too large", True),
    ],
)
def test_what_is_wrong_is_said_with_its_place(answer: str, message: str, is_json: bool) -> None:
    with pytest.raises(InvalidAnswer, match=message) as caught:
        parse_shape("s", OPEN).accept(answer)
    assert caught.value.is_json is is_json


@pytest.mark.parametrize("levels", [64, 520, 5_000, 200_000])
@pytest.mark.parametrize(("before", "after"), [("[", "]"), ('{"b": ', "}")])
def test_an_answer_that_is_nested_too_deeply_is_an_invalid_one(levels: int, before: str, after: str) -> None:
    deep = f'{{"a": "x", "c": {before * levels}1{after * levels}}}'
    with pytest.raises(InvalidAnswer, match=r"nested more than 64 levels deep|recursion"):
        parse_shape("s", OPEN).accept(deep)


@pytest.mark.parametrize("line_end", ["\n", "\t"])
def test_a_line_end_that_was_not_escaped_does_not_spoil_an_answer(line_end: str) -> None:
    assert json.loads(parse_shape("s", OPEN).accept(f'{{"a": "one{line_end}two"}}')) == {
        "a": f"one{line_end}two"
    }


async def test_what_was_cut_off_is_read_but_never_taken_for_whole() -> None:
    prose = parse_shape("s", OPEN, accepts_prose=True)
    assert json.loads(await read_answer(prose, '{"a": "Use on', truncated=False)) == {"a": "Use on"}
    with pytest.raises(InvalidAnswer, match="not JSON") as caught:
        await read_answer(prose, '{"a": "Use on', truncated=True)
    assert (caught.value.partial, caught.value.properties) == ({"a": "Use on"}, 1)


FORM = json.dumps(
    {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1},
            "steps": {"type": "array", "items": {"type": "string"}},
            "sure": {"type": "integer", "minimum": 0, "maximum": 100},
            "why": {"type": "string"},
        },
        "required": ["text", "steps", "sure", "why"],
        "additionalProperties": False,
    }
)
FILLED = {"text": "Keep one.", "steps": ["Begin."], "sure": 80, "why": "It is simple."}
WHOLE = json.dumps(FILLED)
_PROSE = "# Keep one\n\nOne process is simplest, and nothing that was said against it holds. Begin with this:"


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps({"status": "ok", "result": FILLED}),
        json.dumps({"status": "ok", "data": {"items": [1, {"answer": FILLED}]}}),
        json.dumps({"name": "answer", "arguments": FILLED}),
        json.dumps({"name": "answer", "arguments": WHOLE}),
        json.dumps(WHOLE),
        json.dumps([{"note": "mine"}, FILLED]),
        json.dumps([{key: value} for key, value in FILLED.items()]),
        "\n".join(json.dumps({key: value}) for key, value in FILLED.items()),
        f"A draft: {json.dumps({**FILLED, 'text': 'Keep two.'})}\nAnd in the end: {WHOLE}",
        '{"text": "Keep one.", "steps": ["Begin."]}\n\n{"sure": 80, "why": "It is simple."}',
        json.dumps(
            {"sure": 80, "answer": {"text": "Keep one.", "steps": ["Begin."], "why": "It is simple."}}
        ),
        json.dumps({"answer": "Keep one.", "steps": ["Begin."], "sure": 80, "why": "It is simple."}),
        f"function f() {{ return {{a: 1}} }} and {{b}}\n{WHOLE}",
        f"{_PROSE}\n```js\nif (a) {{ f({{b: 1}}) }} else {{ {{ }} {{x}} {{y}} {{z}} {{q}} }}\n```\n```json\n{WHOLE}\n```",
    ],
)
async def test_the_form_is_found_wherever_in_the_answer_it_is(answer: str) -> None:
    assert json.loads(await read_answer(parse_shape("s", FORM), answer, truncated=False)) == FILLED


@pytest.mark.parametrize(
    "answer",
    [
        f'{_PROSE}\n```json\n{{"service": "one"}}\n```\nThat is all.',
        f'{_PROSE}\n```json\n{{"text": "a field of an example"}}\n```\nThat is all.',
        f"{_PROSE}\n```json\n{{'text': 'a field of an example',}}\n```\nThat is all.",
        f"{_PROSE}\n```js\nconst a = {{ text: 'x' }}; f({{}})\n```",
        '<answer><text>Keep one.</text><scores>{"A": 9}</scores></answer>',
        'text: Keep one.\nscores: {"A": 9}\nsure: 80',
        '{"type": "object"}',
        FORM,
        json.dumps(json.loads(FORM)["properties"]),
        '{"sure": 80, "why": "It is simple."}',
        '{"text": "\\ud83d\\ude00 …", "steps": [], "sure": 80, "why": ""}',
        json.dumps({"answer": {"text": "of a part", "notes": {"more": "words"}}, "so": "Keep one."}),
        "{}",
        "[]",
    ],
)
async def test_what_only_resembles_the_form_is_no_answer(answer: str) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        await read_answer(parse_shape("s", FORM, accepts_prose=True), answer, truncated=False)
    assert (caught.value.partial, caught.value.properties) == (None, 0)


@pytest.mark.parametrize(
    ("answer", "partial"),
    [
        ('{"text": "Keep one.", "mine": 1}', {"text": "Keep one.", "mine": 1, "steps": []}),
        ('Here it is: {"text": "Keep one."}', {"text": "Keep one.", "steps": []}),
        (
            f'{_PROSE}\n{{"text": "Keep one.", "why": "It is simple."}}',
            {"text": "Keep one.", "why": "It is simple.", "steps": []},
        ),
        ('{"text": "Keep one.", "steps": ["Be', {"text": "Keep one.", "steps": ["Be"]}),
    ],
)
async def test_an_object_with_the_text_is_the_answer_as_far_as_it_goes(answer: str, partial: object) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        await read_answer(parse_shape("s", FORM, accepts_prose=True), answer, truncated=False)
    assert caught.value.partial == partial


def test_an_answer_may_have_64_levels() -> None:
    deep = f'{{"a": "x", "c": {"[" * 63}{"]" * 63}}}'
    assert json.loads(parse_shape("s", OPEN).accept(deep)) == json.loads(deep)


def test_texts_inside_an_answer_pass_the_sanitizer() -> None:
    assert json.loads(parse_shape("s", OPEN).accept('{"a": "x\\u0000\\u202ey"}')) == {"a": "xy"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("Bad Name", OPEN, "name: must match"),
        ("s", "{", "json_schema: is not JSON"),
        ("s", '{"type": "object", "maximum": 1e999}', "json_schema: is not JSON"),
        ("s", '{"type": "string"}', "json_schema: must be the schema of an object"),
        ("s", '{"type": "object", "properties": 3}', "json_schema: 3 is not of type 'object'"),
        ("s", json.dumps({"type": "object", "title": "x" * 70_000}), "json_schema: is larger than 64 KiB"),
    ],
)
def test_a_bad_schema_is_refused_with_a_reason(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_shape(name, text)


def test_a_reference_to_elsewhere_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\$ref 'http://127.0.0.1:9/x.json' leads to no schema in it"):
        parse_shape("s", '{"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}')


def test_strict_is_asked_for_only_where_the_schema_allows_it() -> None:
    closed = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    nested = {**closed, "properties": {"a": {"type": "object", "properties": {"b": {}}}}}
    assert parse_shape("s", json.dumps(closed)).strict
    assert not parse_shape("s", json.dumps(nested)).strict
    assert not parse_shape("s", OPEN).strict


def test_the_words_hold_the_schema_itself() -> None:
    assert OPEN in schema_instruction(parse_shape("s", OPEN))


JUDGED = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "winner": {"type": "string", "enum": ["ada", "bo"]},
        "reasons": {"type": "array", "items": {"type": "string"}},
        "short": {"type": "string", "maxLength": 20},
        "pair": {"type": "array", "minItems": 5, "items": {"type": "integer"}},
    },
    "required": ["answer"],
}


def test_a_bounded_shape_has_an_end_to_every_text_and_list() -> None:
    within = bound_shape(parse_shape("judgement", json.dumps(JUDGED))).schema["properties"]
    assert 100 <= within["answer"]["maxLength"] <= 1000
    assert 1 <= within["reasons"]["maxItems"] <= 10
    assert within["reasons"]["items"]["maxLength"] <= within["answer"]["maxLength"]
    assert within["short"]["maxLength"] == 20
    assert within["pair"]["maxItems"] == 5
    assert within["winner"] == JUDGED["properties"]["winner"]  # type: ignore[index]


@given(
    st.fixed_dictionaries(
        {"answer": st.text(max_size=500)},
        optional={
            "winner": st.sampled_from(["ada", "bo", "cy"]),
            "reasons": st.lists(st.text(max_size=160), max_size=5),
            "short": st.text(max_size=25),
            "pair": st.lists(st.integers(), max_size=7),
        },
    )
)
def test_whatever_satisfies_the_bounded_shape_satisfies_the_shape_itself(value: dict[str, object]) -> None:
    shape = parse_shape("judgement", json.dumps(JUDGED))
    try:
        accepted = bound_shape(shape).accept(json.dumps(value))
    except InvalidAnswer:
        return
    assert shape.accept(accepted)


def test_a_shape_is_bounded_once() -> None:
    shape = parse_shape("judgement", json.dumps(JUDGED))
    assert bound_shape(shape) is bound_shape(shape)
    assert bound_shape(bound_shape(shape)).schema == bound_shape(shape).schema


_COSTLY = json.dumps({"type": "object", "properties": {"a": {"enum": [*range(1000), "x"]}}})
_LONG = json.dumps({"a": "x" * 10_000})


@pytest.mark.parametrize(
    ("schema", "answer", "in_thread"),
    [
        (OPEN, '{"a": "x"}', False),
        (OPEN, 'Here it is: {"a": "x"}', True),
        (OPEN, _LONG, True),
        (_COSTLY, '{"a": "x"}', True),
    ],
)
async def test_an_answer_is_read_in_a_thread_unless_that_takes_next_to_nothing(
    schema: str, answer: str, *, in_thread: bool
) -> None:
    threads: list[threading.Thread] = []

    class Noted(AnswerShape):
        def accept(self, answer: str) -> str:
            threads.append(threading.current_thread())
            return super().accept(answer)

    shape = parse_shape("s", schema)
    noted = Noted(**{each.name: getattr(shape, each.name) for each in fields(shape)})
    assert json.loads(await read_answer(noted, answer, truncated=False)).keys() == {"a"}

    assert threading.main_thread() not in threads
    assert bool(threads) is in_thread
