"""README's picture of the demo: what the command shows now, in one file that loads nothing."""

import re

from tests.support.demo_picture import PICTURE, draw_demo
from tests.support.guides import ROOT


def test_the_picture_is_what_the_demo_shows() -> None:
    stale = "docs/demo.svg is not what the demo shows: run `python -m tests.support.demo_picture`"
    assert PICTURE.read_text(encoding="utf-8") == draw_demo(), stale


def test_the_picture_shows_each_agent_at_work() -> None:
    text = re.sub(r"<[^>]+>", "", PICTURE.read_text(encoding="utf-8")).replace("&#160;", " ")
    assert "$ parley demo" in text
    for agent, criticized in (
        ("architect", "performance, security"),
        ("performance", "security, architect"),
        ("security", "performance, architect"),
    ):
        assert re.search(rf"{agent} .\s+criticizes {criticized}", text)
    assert "Checkout should record the payment in PostgreSQL" in text


def test_the_picture_loads_nothing_and_is_small() -> None:
    svg = PICTURE.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"') ]+", svg)) == {"http://www.w3.org/2000/svg"}, "a name, no address"
    assert set(re.findall(r"url\(([^)]*?)[0-9]*\)", svg)) <= {"#demo-clip-terminal", "#demo-line-"}
    assert not re.search(r"@import|@font-face|<image|<script|href=", svg)
    assert len(svg.encode()) < 100_000


def test_the_picture_is_in_readme() -> None:
    assert "](docs/demo.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
