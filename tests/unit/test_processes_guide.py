"""Commands of the guide on processes that its run in `tests/e2e` does not reach: services that have ended, and files for systemd."""

import subprocess
from pathlib import Path
from typing import Final

from tests.support.guides import find_blocks

BLOCKS: Final = find_blocks("docs/guides/processes.md")
SECONDS: Final = 60


def run(script: str, folder: Path) -> None:
    environment = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "HOME": str(folder)}
    subprocess.run(["bash", "-euc", script], cwd=folder, env=environment, timeout=SECONDS, check=True)


def test_waiting_for_the_services_ends_when_one_of_them_has_ended(tmp_path: Path) -> None:
    (block,) = (each for each in BLOCKS if "until [" in each.text)
    waiting = block.script[block.script.index("until [") :]
    run(
        f"true & wait $!; echo $! > edge.pid; echo $$ > orchestrator.pid; touch edge.log; {waiting}", tmp_path
    )


def test_files_for_systemd_can_be_read_by_its_user_and_name_no_folder_of_whoever_made_them(
    tmp_path: Path,
) -> None:
    made = "".join(each.text for each in BLOCKS if "umask" in each.text or "cat > common.env" in each.text)
    (block,) = (each for each in BLOCKS if "sudo install" in each.text)
    etc = tmp_path / "etc"
    installed = "".join(f"{line}\n" for line in block.script.splitlines() if "useradd" not in line)
    installed = installed.replace("--group=parley ", "").replace("sudo ", "").replace("/etc/parley", str(etc))
    run(made + installed, tmp_path)

    settings = dict(
        line.split("=", 1) for file in etc.glob("*.env") for line in file.read_text().splitlines()
    )
    assert settings["PARLEY_STORE"] == "sqlite:////var/lib/parley/data"
    assert settings["PARLEY_VECTORS"] == "edge:/var/lib/parley/data/vectors"
    named = {name: Path(value) for name, value in settings.items() if str(tmp_path) in value}
    assert named.keys() >= {
        "PARLEY_SERVICE_SECRET_FILE",
        "PARLEY_RECEIPT_KEYS",
        "PARLEY_TLS_KEY",
        "PARLEY_CA",
    }
    assert [each for each in named.values() if not each.is_file() or not each.is_relative_to(etc)] == []
    assert {each.stat().st_mode & 0o777 for each in etc.rglob("*") if each.is_file()} == {0o640}
    assert not list(etc.rglob("ca.key")), "no service needs the key of the authority"
