"""The printed prompts are those that models get."""

import sys

import pytest

from tests.support import show_prompts


def test_requirements_and_answers_to_issues_are_in_the_printed_prompts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--agents", "3", "--rounds", "2", "--characters", "200", "round/2/propose/ada", "synthesis"]
    monkeypatch.setattr(sys, "argv", ["show_prompts", *asked])
    show_prompts.main()
    further, judged = capsys.readouterr().out.split("= synthesis =")
    for prompt in (further, judged):
        assert "- R1 (a must): The answer is yes or no." in prompt
        assert "issue B.1, taken up: the proposal now says so" in prompt
        assert "issue C.1, not taken up: it costs more than it gains" in prompt
    assert "not answered" not in further + judged
