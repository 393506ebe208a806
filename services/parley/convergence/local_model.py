"""The port of a model in this process, and one that is there while it is used."""

from collections.abc import Sequence
from typing import Protocol

from parley.convergence.held_model import HeldModel
from parley.convergence.model_files import MODEL_NAMES, LocalModelName, check_files
from parley.convergence.vectors import Vector
from parley.runtime.clock import Clock
from parley.runtime.errors import ConfigurationError, unavailable


class LocalModel(Protocol):
    """A model in this process. Several threads may call it at a time."""

    @property
    def name(self) -> str:
        """The model's name."""

    def embed(self, text: str) -> Vector:
        """Embed one text on the calling thread."""

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        """Embed texts on the calling thread, in their order."""


class LateModel:
    """A model that the thread loads that embeds the first text, which takes half a second; `held` releases it when it is idle."""

    def __init__(self, name: LocalModelName, clock: Clock) -> None:
        """Raise ConfigurationError if its files are missing."""
        check_files(name)
        self._file_name = name
        self.held = HeldModel(lambda: _load(name), clock)

    @property
    def name(self) -> str:
        """The model's name."""
        return MODEL_NAMES[self._file_name]

    def load(self) -> None:
        """Load the model; raise ConfigurationError if its files are not the expected ones."""
        with self.held.use():
            pass

    def embed(self, text: str) -> Vector:
        """Embed one text, as `embed_all`."""
        return self.embed_all([text])[0]

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        """Embed texts on the calling thread. Raise ParleyError: UNAVAILABLE `EMBEDDINGS_UNAVAILABLE`."""
        try:
            with self.held.use() as model:
                return model.embed_all(texts)
        except ConfigurationError as error:
            raise unavailable("EMBEDDINGS_UNAVAILABLE", str(error), retry_after=60.0) from error


def _load(name: LocalModelName) -> LocalModel:
    from parley.convergence.models import load_local_model  # heavy, with all that it needs

    return load_local_model(name)
