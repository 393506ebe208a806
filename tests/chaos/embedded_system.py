"""The embedded system in place of services and MongoDB: `parley up` on SQLite, as one process that is killed and drained."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.chaos.harness import Options, System
from tests.chaos.proxy import Proxies
from tests.support.ports import free_ports, is_free

EMBEDDED: Final = "embedded"
_PORTS: Final = 6
"""Of `parley up`: one below that of its orchestrator, and four above."""


class EmbeddedSystem(System):
    """A system of one process, which clients reach over its port."""

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        return ((EMBEDDED,),)

    def build(self) -> None:
        self._add_model_server(next(free_ports()))
        port = next(each for each in free_ports() if all(map(is_free, range(each - 1, each - 1 + _PORTS))))
        self._fronts[EMBEDDED] = port
        variables = {
            "PARLEY_STORE": self.store_url,
            "PARLEY_TENANT_DEBATES": "0",  # one tenant asks for all that is asked
            "PARLEY_TENANT_REQUESTS": "0",
            "PARLEY_TENANT_WATCHES": "0",
            "PARLEY_LOG_LEVEL": "warning",
            **self._use_models(),
            **self._use_vectors(),
        }
        self._add(EMBEDDED, "parley.cli", port, variables, ("up", "--port", str(port)))
        self._start_all()

    def forget(self) -> None:
        """Keep everything: this store is as fast with many documents."""


@contextmanager
def run_embedded_system(folder: Path, latency: float) -> Iterator[EmbeddedSystem]:
    """Run an embedded system on a store of its own for as long as the block lasts; `latency` is the model's, in seconds."""
    data = folder / "data"
    data.mkdir()
    options = Options(latency=latency, orchestrators=(EMBEDDED,))
    with Proxies() as proxies:
        system = EmbeddedSystem(folder, options, f"sqlite:///{data}", folder / "ledger.jsonl", proxies)
        try:
            system.build()
            yield system
        finally:
            system.clear_away()
