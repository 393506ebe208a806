"""The page of the console for a browser without scripts."""

import re
from importlib.resources import files

from parley.cli.app import parley


def test_without_scripts_it_names_commands_that_there_are() -> None:
    page = files("parley.edge").joinpath("console/static/index.html").read_text("utf-8")
    said = re.search("<noscript>(.*)</noscript>", page)
    assert said is not None
    named = re.findall(r"parley ([a-z ]+)", said[1])
    assert named == ["list", "watch"]
    assert set(named) <= set(parley.commands)
