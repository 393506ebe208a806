from pathlib import Path

import pytest

from tests.mutants.explained import Explanation, explanations

PROJECT = Path(__file__).parents[3]


@pytest.mark.parametrize("explained", explanations(), ids=lambda each: f"{Path(each.path).name}: {each.was}")
def test_what_is_explained_of_a_mutant_is_about_a_line_that_is_there(explained: Explanation) -> None:
    assert explained.was in [line.strip() for line in (PROJECT / explained.path).read_text().splitlines()]
    assert explained.why.endswith(".")


def test_an_explanation_is_of_its_own_line_and_change() -> None:
    explained = Explanation("a.py", was="x = 1", now="x = 2", why="It is the same.")
    assert explained.fits(Path("a.py"), ["-    x = 1", "+    x = 2"])
    assert not explained.fits(Path("a.py"), ["-    x = 1", "+    x = 0"])
    assert not explained.fits(Path("b.py"), ["-    x = 1", "+    x = 2"])
    assert not explained.fits(Path("a.py"), ["-    y = 1", "+    x = 2"])
