"""What a client of Parley brings along: not what makes log lines, which services need and which takes long to import."""

import subprocess
import sys

_CODE = "import sys, parley.client, parley.cli.commands.debates; print(*({'structlog', 'pydantic', 'pygments'} & set(sys.modules)))"


def test_a_client_and_the_command_import_nothing_that_only_services_need() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _CODE], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.split() == []
