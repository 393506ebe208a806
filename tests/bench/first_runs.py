"""Runs `make run` as somebody does for the first time: no key, nothing kept. Prints the answers, and says whether they hold.

An answer holds if it has 80 characters or more, repeats no line three times, and shows no confidence. `make first-runs`;
LOCAL_MODEL names another small model, and ARGS=3 is for fewer runs.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_PARLEY: Final = _ROOT / ".venv" / "bin" / "parley"
_QUESTIONS: Final = (
    "",  # make's own
    "Should we put the cache in front of the database or beside it?",
    "Which database should a small shop use?",
    "How do we make our nightly build faster?",
    "Is it worth rewriting our billing system in Rust?",
)
_MIN_CHARACTERS: Final = 80
_MAX_REPETITIONS: Final = 2
_OURS: Final = ("PARLEY_", "OPENAI_", "OPENROUTER_", "OTEL_")


@dataclass(frozen=True, slots=True)
class _Run:
    answer: str
    seconds: float
    judge_seconds: float
    cpu_seconds: float
    faults: tuple[str, ...]


def faults(answer: str) -> Iterator[str]:
    """Yield what is wrong with an answer as it is printed."""
    text = re.sub(r"\A\*Demonstration: [^\n]*\*\n\n", "", answer)
    if text == answer:
        yield "it is not marked as a demonstration"
    if len(text.partition("\n## ")[0].strip()) < _MIN_CHARACTERS:
        yield f"it has fewer than {_MIN_CHARACTERS} characters"
    lines = Counter(line.strip() for line in text.splitlines() if line.strip())
    if any(count > _MAX_REPETITIONS for count in lines.values()):
        yield "it repeats a line"
    if re.search(r"^#+ Confidence|\bconfidence:? *\d", text, re.IGNORECASE | re.MULTILINE):
        yield "it shows confidence"


def main() -> int:
    """Return 0 if every answer holds."""
    parser = argparse.ArgumentParser(prog="make first-runs", description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=10, help="how many; default: 10")
    parser.add_argument("--local-model", default="", metavar="NAME", help="as LOCAL_MODEL of make run")
    asked, runs = parser.parse_args(), []
    for number in range(asked.runs):
        question = _QUESTIONS[number % len(_QUESTIONS)]
        run = _run_first(question, asked.local_model)
        runs.append(run)
        print(f"--- {number + 1}: {question or 'the question of make run'} ({run.seconds:.0f} s)\n")
        print(run.answer)
        for fault in run.faults:
            print(f"!!! {fault}\n")
        sys.stdout.flush()
    _print_figures(runs)
    return 1 if any(run.faults for run in runs) else 0


def _run_first(question: str, local_model: str) -> _Run:
    with TemporaryDirectory() as folder:
        environment = _environment(folder)
        given = {"Q": question, "LOCAL_MODEL": local_model}
        asked = [f"{name}={value}" for name, value in given.items() if value]
        began, cpu_before = time.monotonic(), _cpu_seconds()
        ended = subprocess.run(
            ["make", "--silent", "run", *asked],
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds, cpu_seconds = time.monotonic() - began, _cpu_seconds() - cpu_before
        if ended.returncode:
            sys.exit(f"make run ended with {ended.returncode}: {ended.stderr}")
        judge_seconds = _judge_seconds(ended.stderr, environment)
        return _Run(ended.stdout, seconds, judge_seconds, cpu_seconds, tuple(faults(ended.stdout)))


def _cpu_seconds() -> float:
    """Return what processes that have ended took of the processor: a busy machine makes it little longer."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environment(folder: str) -> Mapping[str, str]:
    """Return the variables of somebody without a key, without a model server, and with nothing kept."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith((*_OURS, "MAKE"))}
    return {**kept, "PARLEY_STORE": f"sqlite:///{folder}", "PARLEY_LOCAL_SERVERS": "off"}


def _judge_seconds(said: str, environment: Mapping[str, str]) -> float:
    """Return how long the judge took, as the debate tells it."""
    (debate,) = re.findall(r"Saved debate (\S+);", said)
    command = [str(_PARLEY), "show", debate, "--json"]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    made = json.loads(shown.stdout)["contributions"]
    (latency,) = [each["reply"]["latency"] for each in made if each.get("is_answer")]
    return float(latency)


def _print_figures(runs: list[_Run]) -> None:
    rows = {
        "run (s)": [run.seconds for run in runs],
        "of it the judge (s)": [run.judge_seconds for run in runs],
        "CPU of a run (s)": [run.cpu_seconds for run in runs],
        "answer (characters)": [float(len(run.answer)) for run in runs],
    }
    print(f"| {len(runs)} first runs | median (lowest-highest) |\n|---|---|")
    for name, values in rows.items():
        print(f"| {name} | {median(values):.1f} ({min(values):.1f}-{max(values):.1f}) |")
    print(f"| answers that hold | {sum(not run.faults for run in runs)} |")
    print(f"\nload {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    sys.exit(main())
