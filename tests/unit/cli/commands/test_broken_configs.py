"""Configuration files that are broken: a line each, with file, line, key and what to do, and exit code 4."""

from pathlib import Path
from typing import Final

import pytest

from parley.cli.__main__ import run

FOLDER = Path(__file__).parents[3] / "data" / "configs" / "broken"

TOLD: Final = {
    "agents-as-mapping.yaml": ":1: agents: must be a list, not a mapping",
    "empty.json": ":1: is not JSON: the file is empty; {} would do",
    "folder.yaml": ": is a folder; name a file in it",
    "judge-as-list.json": ":2: judge: must be a mapping, not a list",
    "key-in-file.yaml": ":4: providers[0].api_key: a key does not belong in a file; put it into a variable and name "
    "that with api_key_env",
    "key-of-another-format.yaml": ":3: debate.synthesis_method: the format arena does not use it; its judge writes the answer from "
    "the vote; arena.consensus and arena.ballots say what decides",
    "latin-1.yaml": ":2: is not UTF-8; save it as UTF-8",
    "many-perspectives.yaml": ":2: debate.default_perspectives: must be at most 4",
    "missing-comma.json": ":4: is not JSON: column 5: a comma must stand before this, or a bracket is not closed",
    "no-rounds.json": ":4: debate.rounds: must be at least 1",
    "nobody-left.json": ":2: agents: no agent is left; enable one",
    "open-quote.yaml": ":3: is not YAML: the text that begins here has no closing quote",
    "perspective-key.yaml": ":5: debate.custom_perspectives[0].priorites: unknown key; did you mean priorities?",
    "perspective-twice.yaml": ":3: debate.custom_perspectives: two are called 'cost'; names must differ",
    "perspective-without-priorities.yaml": ":4: debate.custom_perspectives[0].priorities: must have at least 1 item, not 0",
    "prompt-as-list.json": ":3: agents[0].systemPromptPath: must be text, not a list",
    "provider.yaml": ":3: agents[0].provider: unknown provider opnai; known providers: openai, openrouter",
    "role.yaml": ":3: agents[1].role: unknown role 'securty'; did you mean security? Known roles: ",
    "rounds-in-words.json": ":4: debate.rounds: must be a whole number",
    "same-id.json": ":4: agents[1].id: ada is the id of another agent too",
    "synthesis.json": ":4: debate.synthesisMethod: must be 'judge', 'voting' or 'merge'; did you mean 'voting'?",
    "tab.yaml": ":2: is not YAML: a tab stands here; indent with spaces",
    "threshold.yaml": ":4: debate.termination.threshold: must be at most 100",
    "token-budget.yaml": ":3: debate.token_budget_per_round: must be unlimited, 0 for the same, or a number of tokens, at "
    "least 64",
    "too-hot.yaml": ":3: agents[0].temperature: must be at most 2",
    "trailing-comma.json": ":4: is not JSON: column 3: nothing follows the last comma; remove the comma",
    "twice.json": ":4: rounds: is here twice, first on line 3",
    "two-timeouts.yaml": ":3: debate.round_timeout_seconds: timeout_per_round says it too; leave one of them out",
    "unknown-debate-key.json": ":5: debate.timeoutPerRounds: unknown key; did you mean timeoutPerRound?",
    "unknown-key.json": ":6: agents[0].modle: unknown key; did you mean model?",
    "unknown-tool.json": ":3: agents[0].tools[1]: must be 'context_search', 'file_read' or 'list_files'",
    "nowhere.json": ": there is no such file",
}


@pytest.mark.parametrize("name", TOLD)
def test_a_broken_file_is_refused_in_one_line(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert run(["debate", "Which?", "--config", str(FOLDER / name)]) == 4
    told = capsys.readouterr()
    (line,) = told.err.splitlines()
    assert line.startswith(f"parley: {FOLDER / name}{TOLD[name]}")
    assert told.out == ""


def test_every_broken_file_is_tried() -> None:
    assert {path.name for path in FOLDER.iterdir()} == TOLD.keys() - {"nowhere.json"}
