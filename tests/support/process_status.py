"""What the kernel says of a process (Linux only)."""

import os
from pathlib import Path


def state_of(pid: int) -> str:
    """Return the letter of a process's state, such as T for one that is stopped. Raise FileNotFoundError if it is gone."""
    return _read_stat(pid)[0]


def parent_of(pid: int) -> int:
    """Return the process that started a process."""
    return int(_read_stat(pid)[1])


def cpu_seconds_of(pid: int) -> float:
    """Return the seconds of CPU that a process took so far, in user mode and in the kernel."""
    fields = _read_stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Return the bytes of a process that are in memory."""
    return _read_status(pid, "VmRSS:")


def peak_bytes(pid: int) -> int:
    """Return the most bytes of a process that were ever in memory; 0 for one that has ended."""
    return _read_status(pid, "VmHWM:")


def _read_stat(pid: int) -> list[str]:
    """Return the fields from the state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _read_status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(each.split()[1]) * 1024 for each in lines if each.startswith(name)), 0)
