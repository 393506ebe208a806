import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt.sanitizer import TextSanitizer, clean, clean_value, to_line

ODD = "\x00\x07\t\n\r\x1b\x7f\x85\x9f\u00ad\u200b\u200d\u200e\u2028\u2029\u202e\u2066\ufeff\ufffe\ud83d\ude00\ud800\U000e0041"
texts = st.text(alphabet=st.one_of(st.sampled_from(ODD), st.characters(codec=None)), max_size=60)


@given(st.lists(texts, max_size=8), st.integers(0, 80))
def test_a_text_in_pieces_comes_out_as_the_whole_would(pieces: list[str], limit: int) -> None:
    sanitizer = TextSanitizer(limit)
    out = "".join([sanitizer.feed(piece) for piece in pieces]) + sanitizer.end()
    assert out == clean("".join(pieces), limit)
    assert len(out) <= limit


@given(texts)
def test_what_comes_out_is_valid_and_holds_no_controls_and_does_not_change_again(text: str) -> None:
    out = clean(text)
    out.encode("utf-8")
    assert not [character for character in out if ord(character) < 32 and character not in "\n\t"]
    assert not set(out) & set("\x7f\x85\x9f\u200b\u2028\u2029\u202e\u2066\ufeff\ufffe\U000e0041")
    assert clean(out) == out


@pytest.mark.parametrize(
    ("given_text", "clean_text"),
    [
        ("plain text, ünïcode 漢字", "plain text, ünïcode 漢字"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a\x00b\x1b[31mc", "ab[31mc"),
        ("\ud83d\ude00 \ud83d", "😀 \ufffd"),
        ("user\u202egnp.exe", "usergnp.exe"),
        (
            "👨\u200d👩\u200d👧 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "👨\u200d👩\u200d👧 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),
    ],
)
def test_clean_keeps_what_people_write_and_drops_the_rest(given_text: str, clean_text: str) -> None:
    assert clean(given_text) == clean_text


def test_halves_of_a_pair_in_two_pieces_become_one_character() -> None:
    sanitizer = TextSanitizer()
    assert sanitizer.feed("a\ud83d") == "a"
    assert sanitizer.feed("\ude00b") == "😀b"


def test_json_values_are_clean_to_the_last_key() -> None:
    value = json.loads('{"a\\u0000": ["b\\u001b", {"c": "\\ud800"}, 1, null]}')
    assert clean_value(value) == {"a": ["b", {"c": "\ufffd"}, 1, None]}


def test_a_message_is_one_line_of_bounded_length() -> None:
    assert to_line("a\n  b\x00\tc") == "a b c"
    assert len(to_line("word " * 500, 100)) == 100
