"""The process of a command, from its start to its exit code."""

import subprocess
import sys

_COMMAND = """
import atexit
from parley.cli import __main__, command_line

class Imported:
    def __del__(self):
        print("taken down")

imported = Imported()

def run(arguments):
    atexit.register(print, "what a library does at the end")
    print("the command", end="; ")
    return 3

command_line.run = run
__main__.main()
"""

_UNREAD = """
import sys
from parley.cli import app, command_line

def main(*_, **__):
    raise ExceptionGroup("tasks of a group", [BrokenPipeError()])

app.parley.main = main
sys.exit(command_line.run(["watch"]))
"""


def test_a_command_with_tasks_ends_without_a_word_once_nobody_reads_what_it_prints() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _UNREAD], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "")


def test_a_command_exits_with_its_code_once_libraries_have_ended_and_takes_nothing_down() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _COMMAND], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (3, "")
    assert ended.stdout == "the command; what a library does at the end\n"
