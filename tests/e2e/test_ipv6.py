"""A machine that has IPv6 alone: everything listens and is reached on ::1."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.warm_start import list_command

pytestmark = pytest.mark.timeout(300)  # a start takes its time on a machine that is busy

ONLY_IPV6 = "ip link set lo up && ip addr del 127.0.0.1/8 dev lo"
DEBATES = """
set -e
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT  # what still runs would keep the output open
cd "$1"
shift
"$@" tests.support.model_server --port 18080 > url &
models=$!
until [ -s url ]; do sleep 0.1; done
export OPENAI_BASE_URL=http://[::1]:18080/v1 PARLEY_MODEL=test
"$@" parley.cli debate "Which?" --agents architect,security --rounds 1
"$@" parley.cli up --port 17401 > up.txt 2> up.err &
up=$!
until grep -q memory up.txt && grep -q orchestrator up.txt; do kill -0 $up; sleep 0.1; done
cat up.txt
"$@" parley.cli list --server "[::1]:17401"
PARLEY_HOST=::1 PARLEY_PORT=17501 PARLEY_STORE=sqlite:///other "$@" parley.cli serve ratings 2> serve.err &
serving=$!
until grep -q 17501 serve.err; do kill -0 $serving; sleep 0.1; done
"$@" parley.cli ratings --server "[::1]:17401"
kill $up $serving $models
wait $up $serving
"$@" parley.cli list --server "[::1]:17401" || true
"""


@pytest.fixture
def only_ipv6() -> list[str]:
    """The beginning of a command line whose command has a network of its own, with IPv6 alone."""
    command = ["unshare", "-n", "bash", "-c", f'{ONLY_IPV6} && exec "$@"', "-"]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"NOT TRIED, since there is no network of our own to be had: {tried.stderr.strip()}")
    return command


def test_debates_and_services_run_on_a_machine_that_has_ipv6_alone(
    tmp_path: Path, only_ipv6: list[str]
) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "OPENAI_"))}
    *relay, _ = list_command(before=only_ipv6)
    ended = subprocess.run(
        ["bash", "-c", DEBATES, "-", str(tmp_path), *relay],
        env={**kept, "PARLEY_STORE": f"sqlite:///{tmp_path / 'data'}", "PARLEY_LOCAL_SERVERS": "off"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    assert "orchestrator  [::1]:17401" in ended.stdout
    assert ended.stdout.count("completed") == 1, "the list that the server gave"
    assert "no orchestrator answers at [::1]:17401 (connection refused); start one with:" in ended.stderr
