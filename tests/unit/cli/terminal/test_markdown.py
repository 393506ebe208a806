"""Answers of all kinds on a terminal: what they say is all there."""

import sys

import pytest

from parley.cli.terminal.markdown import print_indented, print_markdown

ANSWER = r"""# Use one

Costs $5 and $x^2 + \alpha$, or \(a_1 * b_2\); see <script>alert(1)</script> and <b>bold</b>.

| store | cost |
|---|---:|
| one \| two | 3 |

````markdown
```python
print("# no heading")
```
<div>kept</div>
````

<details>
not hidden
</details>

$$
\sum_{i=1}^{n} i
$$
"""


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    print_markdown(ANSWER)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "Costs $5 and $x^2 + \\alpha$",
        "<script>alert(1)</script>",
        "<b>bold</b>",
        "one | two",
        "```python",
        'print("# no heading")',
        "<div>kept</div>",
        "<details>",
        "not hidden",
        "\\sum_{i=1}^{n} i",
    ],
)
def test_nothing_of_an_answer_is_lost(text: str, shown: str) -> None:
    assert text in shown


def test_elsewhere_an_answer_stands_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_markdown(ANSWER)
    assert capsys.readouterr().out == ANSWER
    print_indented("a\n\n- b")
    assert capsys.readouterr().out == "    a\n\n    - b\n\n"


def test_what_has_no_place_on_a_terminal_comes_in_by_no_entity(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    hidden = "&#x202e;&#x200b;&#xE0041;&InvisibleTimes;"
    print_markdown(
        f"# Pay{hidden}\n\n- to *A{hidden}* [b{hidden}](https://x.example/{hidden} '{hidden}') `c`\n\n| d{hidden} |\n|---|\n"
    )
    shown = capsys.readouterr().out
    assert not {"\u202e", "\u200b", "\U000e0041", "\u2062"} & set(shown)
    assert "Pay" in shown
