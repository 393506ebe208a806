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


def test_a_command_exits_with_its_code_once_libraries_have_ended_and_takes_nothing_down() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _COMMAND], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (3, "")
    assert ended.stdout == "the command; what a library does at the end\n"
