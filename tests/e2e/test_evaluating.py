"""`parley eval` as people run it: on a finished debate, with files of evaluators as other tools write them."""

import csv
import json
import re
from pathlib import Path

import pytest

from tests.e2e.harness import model_server
from tests.support.command import Command, Ended

EVALUATORS = Path(__file__).parents[1] / "data" / "evaluators"
ID = re.compile(r"deb-\d{8}-\d{6}-[a-z2-7]{8}")


def write_configuration(url: str) -> str:
    """A configuration whose two providers are the model server."""
    return (
        "providers:\n"
        f"- {{name: openai, kind: openai, base_url: '{url}'}}\n"
        f"- {{name: openrouter, kind: openrouter, base_url: '{url}'}}\n"
        "debate: {rounds: 1}\n"
    )


def run_command(folder: Path, *arguments: str, url: str = "") -> Ended:
    variables = {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"} if url else {}
    return Command(arguments, folder, variables).end()


def hold_debate(folder: Path, url: str) -> str:
    ended = run_command(folder, "debate", "Which?", "-a", "architect", "-r", "1", "-o", "x.json", url=url)
    assert ended.code == 0, ended.err
    found: str = json.loads((folder / "x.json").read_text())["id"]
    return found


def test_a_debate_is_evaluated_without_any_configuration_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    with model_server() as url:
        debate = hold_debate(tmp_path, url)
        ended = run_command(tmp_path, "eval", debate[:-4], url=url)
    assert ended.code == 0, ended.err
    assert "No parley.yaml or debate-config.json here: the default team evaluates." in ended.err
    assert re.match(rf"\*\*\d+\.\d of 10\*\* for {debate}, by 2 evaluators, each by itself\.\n", ended.out)
    assert "| Dimension | architect | performance | Average |\n" in ended.out
    (evaluation,) = {each for line in ended.err for each in ID.findall(line)} - {debate}
    shown = run_command(tmp_path, "show", evaluation).out
    assert f"Evaluates  {debate}\n" in shown
    assert "Judge" not in shown
    assert f"Evaluated  {evaluation}\n" in run_command(tmp_path, "show", debate).out


@pytest.mark.usefixtures("fixed_ports")
def test_files_of_evaluators_run_as_they_are(tmp_path: Path) -> None:
    with model_server() as url:
        (tmp_path / "serving.yaml").write_text(write_configuration(url))
        up = Command(["up", "-c", "serving.yaml"], tmp_path, {"PARLEY_MODEL": "openai/test"})
        up.wait_for("Ctrl-C stops")
        debate = run_command(tmp_path, "debate", "Which?", "-a", "architect", "-r", "1").err
        (judged,) = {each for line in debate for each in ID.findall(line)}
        for name, evaluators in (("single", 1), ("prompts", 2), ("openai", 1), ("mixed", 2)):
            config = str(EVALUATORS / f"{name}.json")
            ended = run_command(tmp_path, "eval", judged, "-c", config, "-o", f"{name}.csv")
            assert ended.code == 0, (name, ended.err)
            rows = list(csv.DictReader((tmp_path / f"{name}.csv").open(newline="")))
            scored = {row["evaluator"] for row in rows} - {"(average)"}
            assert scored == {f"eval-{number + 1}" for number in range(evaluators)}
        config = str(EVALUATORS / "mixed.json")
        mixed = run_command(tmp_path, "eval", judged, "-c", config, "--format", "json")
    assert json.loads(mixed.out)["debate_id"] == judged
    assert any("has no effect here and is passed over" in line for line in mixed.err)
    assert any("gone.md cannot be read" in line for line in mixed.err)


def test_a_file_of_evaluators_is_used_by_a_system_of_ones_own(tmp_path: Path) -> None:
    with model_server() as url:
        debate = hold_debate(tmp_path, url)
        config = str(EVALUATORS / "openai.json")
        ended = run_command(tmp_path, "eval", debate, "-c", config, "--format", "csv", url=url)
        refused = run_command(tmp_path, "debate", "Which?", "-c", config, url=url)
    assert ended.code == 0, ended.err
    assert '"eval-1","security",' in ended.out
    assert refused.code == 4
    assert refused.err[0] == f"parley: {config}:3: agents[0].role: is missing"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (
            ["-c", "{single}"],
            4,
            r".*single\.json:7: agents\[0\]\.provider: provider openrouter needs OPENROUTER_API_KEY",
        ),
        (["-c", "none.json"], 4, r"none\.json: there is no such file"),
        (["-a", "wizard"], 2, r"--agents: unknown role 'wizard'; known roles: .*evaluator.*"),
        (["--format", "pdf"], 2, r".*'pdf' is not one of.*"),
        (["-o", "/"], 2, r"--output /: is a folder; name a file in it"),
        ([], 1, r"no debate's id begins with deb-2; parley list shows them"),
    ],
)
def test_what_cannot_be_is_one_line_and_a_code(
    arguments: list[str], code: int, told: str, tmp_path: Path
) -> None:
    given = [each.format(single=EVALUATORS / "single.json") for each in arguments]
    ended = run_command(tmp_path, "eval", "deb-2", *given, url="http://127.0.0.1:9/v1")
    assert ended.code == code, ended.err
    assert re.match(f"parley: {told}", ended.err[-1]), ended.err
