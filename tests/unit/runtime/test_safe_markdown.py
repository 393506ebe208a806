"""What others wrote holds no heading and no HTML, wherever it is put; what is markup otherwise stays."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from parley.runtime import safe_markdown
from parley.runtime.safe_markdown import list_item, lower_headings, quote, to_safe_markdown

HOSTILE = st.lists(
    st.sampled_from(
        [
            *(
                "#",
                "## a",
                "=",
                "===",
                "-",
                "---",
                "- ",
                "* ",
                "+ ",
                "1. ",
                "> ",
                "a",
                " ",
                "  ",
                "\t",
                "    ",
            ),
            *(
                "`",
                "``",
                "```",
                "````",
                "~~~",
                "```js",
                "\\",
                "<div>",
                "</p>",
                "<!-- ",
                "-->",
                "<?x",
                "<![CDATA[",
            ),
            *(
                "<script>",
                "<a b='",
                "'>",
                "<https://a.b>",
                "<https://a`b>",
                "[",
                "](",
                ")",
                "[a]: /b",
                "|",
                "!",
                "![",
                "![a](//b.c/d.png)",
                "![a]",
                "]:",
                "[a]: <b> 'c'",
                "[^1]: a",
            ),
            *(
                "](javascript:a)",
                "](<b c>)",
                "](<mailto:b>)",
                "](https://a.b)",
                "](",
                "<",
                ">",
                "java",
                "http:",
            ),
            *("&lt;b&gt;", "\n", "\n", "\n", "\n\n", "\r", "\r\n", "\x0b", "\x0c", "\u2028", "\x00", "é"),
        ]
    ),
    max_size=24,
).map("".join)


def tokens_of(markdown: str, env: dict[str, Any] | None = None) -> list[Token]:
    reader = MarkdownIt("commonmark").enable("table")
    reader.validateLink = lambda url: True  # type: ignore[method-assign]  # not every reader looks at addresses
    blocks = reader.parse(markdown, env)
    return [*blocks, *(each for block in blocks for each in block.children or ())]


def kinds_of(markdown: str) -> set[str]:
    return {each.type for each in tokens_of(markdown)}


def text_of(markdown: str) -> str:
    kinds = ("text", "code_inline", "fence", "code_block")
    return "|".join(each.content for each in tokens_of(markdown) if each.type in kinds)


@given(HOSTILE)
@example("```\n\n- ```\n  # a")
@example("a\n ```\n```\n# b")
@example("- ```\n```\n# a\n```\n# b")
@example("[a](`b) <div> `")
@example("\\\\<b>")
@example("`a\n`b` <i> `c`")
@example("a\n \t---")
@example("[`]: /a`")
@example("[a\n`b]: /c`")
@example("\\![a](//b.c)")
def test_no_text_makes_a_heading_or_defines_a_link_or_holds_html_or_an_image(text: str) -> None:
    for put in (quote, list_item):
        shown = f"{put(to_safe_markdown(text))}\n\n# Ours\n"
        env: dict[str, Any] = {}
        tokens = tokens_of(shown, env)
        assert [each.level for each in tokens if each.type == "heading_open"] == [0]
        assert not {"html_block", "html_inline", "image"} & {each.type for each in tokens}
        assert not env.get("references")


@given(HOSTILE)
@example("[a](\njavascript:b)")
@example("[a](<https://b`c>)")
@example("\\[a\\](javascript:b)")
@example("[a](\u00a0https://b)")
def test_links_lead_to_the_web_or_to_mail(text: str) -> None:
    links = [str(each.attrGet("href")) for each in tokens_of(quote(text)) if each.type == "link_open"]
    assert all(each.lower().startswith(("http:", "https:", "mailto:")) for each in links)


@given(HOSTILE)
def test_what_is_harmless_stays_as_it_is(text: str) -> None:
    text = text.replace(
        "`", ""
    )  # beside a backslash it cannot be told what is code, and it is not taken for code
    assert to_safe_markdown(to_safe_markdown(text)) == to_safe_markdown(text)


@pytest.mark.parametrize(
    "text",
    [
        "Plain, with *emphasis*, **more**, `code` and [a link](https://a.b).",
        "- one\n- two\n  1. three",
        "```python\n# a comment\nx: List<str> = '<div>'\n```\n\nAnd `List<str>` in a line.",
        "~~~\n---\n# a\n~~~",
        "Mind <https://example.org/a#b>, 3 < 4 and a <- b.",
        "above\n\n---\n\nbelow, #7 and C#",
        "> a quote\n> of two lines",
        "Wow! [A link](https://a.b), and `x: list[int]: ...` in code.",
    ],
)
def test_other_markup_stays_as_it_was(text: str) -> None:
    assert to_safe_markdown(text) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("# Loud", "Loud"),
        ("#", "#"),
        ("## 1. **Very** loud ##", "1. Very loud"),
        ("## *Loud*", "## Loud"),
        ("# **Loud** and **clear**", "Loud and clear"),
        ("# Why 2**n grows", "# Why 2**n grows"),
        ("# \u00a0Loud\u00a0", "# \u00a0Loud"),
        ("Loud\n===", "Loud|==="),
        ("- ## Loud", "Loud"),
        ("a <b>bold</b> word", "a |<|b>bold|<|/b> word"),
        ("<!-- gone", "<|!-- gone"),
        ("![seen](https://a.b/c.png)", "!seen"),
        ("![seen](//a.b/c.png)", "![seen](//a.b/c.png)"),
        ("[run](javascript:a) and [go](HTTP://a.b)", "[run](javascript:a) and go"),
        ("[ours]: //a.b", "[ours]: //a.b"),
    ],
)
def test_what_is_made_harmless_is_read_as_it_was_written(text: str, read: str) -> None:
    assert text_of(to_safe_markdown(text)).replace("|", "") == read.replace("|", "")


def test_a_heading_is_a_line_in_bold_and_a_comment_in_code_is_none() -> None:
    assert to_safe_markdown("## Load\n\n- ### In a list") == "**Load**\n\n- **In a list**"
    assert to_safe_markdown("- ```\n  # code\n  ```") == "- ```\n  \\# code\n  ```"


def test_marks_at_the_end_of_a_heading_are_no_part_of_it_behind_a_blank() -> None:
    assert to_safe_markdown("# Load ##\n\n# In C#\n\n# #") == "**Load**\n\n**In C#**\n\n**#**"
    assert to_safe_markdown("a\n\n##  \n\nb") == "a\n\n\\##  \n\nb"


def test_a_heading_of_very_many_blanks_is_read_at_once() -> None:
    """It would take an hour if its title could begin or end at each of them."""
    assert to_safe_markdown(f"#{' ' * 10_000}*") == f"\\#{' ' * 10_000}*"
    assert to_safe_markdown(f"# a{' ' * 100_000}b") == f"**a{' ' * 100_000}b**"


def test_what_was_a_heading_stands_apart_from_the_text_next_to_it() -> None:
    text = "Yes.\n# Load\nUse it.\n- a\n## *Peak*\n2. b\n\n```\n# code\nmore\n```"
    shown = to_safe_markdown(text)
    assert shown == ("Yes.\n\n**Load**\n\nUse it.\n- a\n\n\\## *Peak*\n\n2. b\n\n```\n# code\nmore\n```")
    assert to_safe_markdown("- ```\n  # code\n  more\n  ```") == "- ```\n  \\# code\n  more\n  ```"


def test_headings_are_lowered_together_and_code_stays() -> None:
    text = "Yes.\n\n# Load\n\n### Peak\n\n```\n# code\n```"
    assert lower_headings(text, 3) == "Yes.\n\n### Load\n\n##### Peak\n\n```\n# code\n```"
    assert lower_headings("#### Load", 3) == "#### Load"
    assert lower_headings("- ```\n  # code\n  ```\n\n# Load", 3) == "- ```\n  # code\n  ```\n\n### Load"
    assert lower_headings("# Load\n\n- ```\n```\n# code", 3) == "### Load\n\n- ```\n```\n# code"
    assert lower_headings("# Load\n\n```\n- ```\n# code", 3) == "### Load\n\n```\n- ```\n# code"
    steps = "1. Start it:\n   ~~~sh\n   # code\n# code\n   ~~~\n   ```\n# code"
    assert lower_headings(f"# Load\n\n{steps}", 3) == f"### Load\n\n{steps}"


def test_a_tag_that_is_escaped_already_stays_escaped() -> None:
    assert to_safe_markdown(r"\<b> and \\<b>") == r"\<b> and \\\<b>"
    assert not {"html_inline"} & kinds_of(to_safe_markdown(r"\<b> and \\<b>"))


def test_a_line_of_very_many_backticks_is_not_looked_at_for_code() -> None:
    """A text of runs of ever other lengths would take a second."""
    assert to_safe_markdown("`<b>` " * 50) == ("`<b>` " * 50).strip()
    assert to_safe_markdown("`<b>` " * 51) == (r"`\<b>` " * 51).strip()


@given(HOSTILE)
@example("a\n--\nb")
@example("a\r==")
@example("> a\n> ===")
def test_a_text_without_marks_is_what_looking_at_each_of_its_lines_comes_to(text: str) -> None:
    shown = to_safe_markdown(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(safe_markdown, "_MAY_REACH_OUT", ("",))
        assert to_safe_markdown(text) == shown


def test_a_quote_holds_its_blank_lines_without_a_space_behind_the_mark() -> None:
    assert quote("a\n\n\n\nb\n\n> \nc") == "> a\n>\n>\n>\n> b\n>\n> > \n> c"
    assert quote(" \n") == ">"
