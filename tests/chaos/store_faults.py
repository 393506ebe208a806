"""What may happen to a store, done to the one of a system: it is held, slowed, cut off, killed and started again, or steps down."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Final

from tests.chaos.harness import System
from tests.chaos.history import Fault
from tests.contract.replica_set import step_down

_A_COMMAND: Final = 1.0
"""Seconds that each command of a slow store takes."""


def trouble_store(system: System, kind: str, seconds: float, *, a_command: float = _A_COMMAND) -> None:
    """Do something to the store of all services for so many seconds; a name of `STORE_FAULTS` says what.

    A store that was held carries out what came meanwhile, also for clients that are gone. `a_command` are the seconds a
    command takes where it is slow.
    """
    began = time.monotonic()
    if kind == "slow":
        _slow_down(system, seconds, a_command)
    else:
        STORE_FAULTS[kind](system, seconds)
    system.faults.append(Fault("store", kind, began, time.monotonic()))


def _hold(system: System, seconds: float) -> None:
    for link in system.store_links():
        system.proxies.hold(link)
    time.sleep(seconds)
    for link in system.store_links():
        system.proxies.let_go(link)


def _slow_down(system: System, seconds: float, a_command: float = _A_COMMAND) -> None:
    for link in system.store_links():
        system.proxies.slow(link, a_command)
    time.sleep(seconds)
    for link in system.store_links():
        system.proxies.slow(link, 0)


def _cut(system: System, seconds: float) -> None:
    for link in system.store_links():
        system.proxies.cut(link, refuse=True)
    time.sleep(seconds)
    for link in system.store_links():
        system.proxies.mend(link)


def _restart(system: System, seconds: float) -> None:
    """Kill the store; one that is not ours can only be cut off."""
    if system.restart_store is None:
        _cut(system, seconds)
    else:
        system.restart_store(seconds)


def _step_down(system: System, seconds: float) -> None:
    """Let the primary of a replica set be a secondary: it refuses writes, and so do all others."""
    step_down(system.store_url, math.ceil(seconds))
    time.sleep(math.ceil(seconds))


STORE_FAULTS: Final[Mapping[str, Callable[[System, float], None]]] = {
    "hold": _hold,
    "slow": _slow_down,
    "cut": _cut,
    "restart": _restart,
    "step-down": _step_down,
}
