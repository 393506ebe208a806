"""A Markdown text as one HTML file: it stands by itself, and whatever is written in it runs and loads nothing."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from parley.runtime.html_page import PAGE_POLICY, render_page
from parley.runtime.safe_markdown import fold, inline, list_item, quote

OURS = {"html", "head", "meta", "title", "style", "body", "main"}
STRUCTURE = {"a", "blockquote", "code", "em", "h1", "h2", "li", "p", "pre", "strong", "table", "td", "ul"}


class Reader(HTMLParser):
    """Tags with their attributes, and the texts in them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: dict[str, str] = {}
        self._inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[self._inside[-1]] = self.texts.get(self._inside[-1], "") + data


def test_a_page_has_the_text_as_structure_and_its_first_heading_as_title() -> None:
    page = Reader(render_page("# One *or* `two` & why?\n\n- **both**\n\n## Answer\n"))
    assert page.texts["title"] == "One or two & why?"
    assert page.texts["strong"] == "both"
    assert page.texts["h2"].strip() == "Answer"
    assert set(page.tags) <= OURS | STRUCTURE
    assert Reader(render_page("Nothing.")).texts["title"] == "Report"


def test_its_policy_allows_its_own_styles_and_nothing_else() -> None:
    page = Reader(render_page("# Which?"))
    style = base64.b64encode(hashlib.sha256(page.texts["style"].encode()).digest()).decode()
    assert PAGE_POLICY.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{style}'"]
    assert ("content", PAGE_POLICY) in page.attributes


def test_it_is_for_light_and_dark_and_fetches_nothing() -> None:
    page = render_page("# Which?\n\n![x](https://evil.example/pixel.png)")
    assert "color-scheme: light dark" in page
    assert "prefers-color-scheme: dark" in page
    assert "url(" not in page
    assert "@import" not in page
    assert not {"img", "link", "script", "iframe"} & set(Reader(page).tags)


@pytest.mark.parametrize(
    "text",
    [
        "</main></body><script>alert(1)</script>",
        "</title><script>alert(1)</script>",
        "</style><style>*{display:none}</style>",
        "[x](javascript:alert(1)) <javascript:alert(1)> [y](JaVaScRiPt&#58;alert(1))",
        "[x](data:text/html,<script>1</script>) [y](file:///etc/passwd) [z](/v1/debates)",
        "<img src=x onerror=alert(1)><svg onload=alert(1)>",
        '[x](https://ok.example "a\\" onmouseover=\\"alert(1)")',
        '```"><script>\n</code></pre><script>alert(1)</script>\n```',
        "| a |\n|---|\n| <b onclick=alert(1)>x</b> |",
        '<meta http-equiv="refresh" content="0;url=https://evil.example">',
        "<base href='https://evil.example'>",
    ],
)
def test_hostile_text_stays_text(text: str) -> None:
    for written in (text, f"# {text}", f"> {text}"):
        page = Reader(render_page(written))
        assert page.tags.count("style") == page.tags.count("title") == page.tags.count("main") == 1
        assert page.tags.count("meta") == 4
        assert set(page.tags) <= OURS | STRUCTURE | {"thead", "tbody", "tr", "th"}
        names = {name for name, _ in page.attributes}
        assert names <= {"lang", "charset", "http-equiv", "content", "name", "href", "title", "rel"}
        links = [value for name, value in page.attributes if name == "href"]
        assert all(each.startswith("https://ok.example") for each in links)


def test_marks_that_turn_or_hide_text_are_left_out_of_text_and_title() -> None:
    page = render_page("# pay \u202eevil\u2066 \x1b[31mred\u200b\n")
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x1b]", page)
    assert "<title>pay evil red</title>" in page


def test_what_a_report_folds_can_be_folded_and_no_text_of_an_agent_opens_or_ends_a_fold() -> None:
    hostile = "</details>\n\n<details>\n<summary>Mine</summary>\n\n</details>"
    text = "\n\n".join(
        ["# Report", *fold("Proposals: 1", [quote(hostile), list_item(hostile)]), inline(hostile), "End."]
    )
    page = render_page(text)
    assert page.count("<details>") == page.count("</details>") == 1
    begins, ends = page.index("<summary>Proposals: 1</summary>"), page.index("</details>")
    assert begins < page.index("<blockquote>") < page.index("</blockquote>") < ends < page.index("End.")
    assert "&lt;summary&gt;Mine&lt;/summary&gt;" in page
    assert "&lt;/details&gt;" in render_page("> </details>"), (
        "in a quotation it is text, however it came there"
    )
