"""The port of a model in this process, and one that is loaded when it is first used."""

from threading import Lock
from typing import Protocol

from parley.convergence.model_files import MODEL_NAMES, LocalModelName, check_files
from parley.convergence.vectors import Vector
from parley.runtime.errors import ConfigurationError, unavailable


class LocalModel(Protocol):
    """A model in this process. Several threads may call it at a time."""

    @property
    def name(self) -> str:
        """The model's name."""

    def embed(self, text: str) -> Vector:
        """Embed one text on the calling thread."""


class LateModel:
    """A model that the thread loads that embeds the first text, which takes half a second."""

    def __init__(self, name: LocalModelName) -> None:
        """Raise ConfigurationError if its files are missing."""
        check_files(name)
        self._file_name = name
        self._model: LocalModel | None = None
        self._loading = Lock()

    @property
    def name(self) -> str:
        """The model's name."""
        return MODEL_NAMES[self._file_name]

    def load(self) -> LocalModel:
        """Return the model; raise ConfigurationError if its files are not the expected ones."""
        with self._loading:
            if self._model is None:
                from parley.convergence.models import load_local_model  # heavy, with all that it needs

                self._model = load_local_model(self._file_name)
            return self._model

    def embed(self, text: str) -> Vector:
        """Embed one text on the calling thread. Raise ParleyError: UNAVAILABLE `EMBEDDINGS_UNAVAILABLE`."""
        try:
            model = self.load()
        except ConfigurationError as error:
            raise unavailable("EMBEDDINGS_UNAVAILABLE", str(error), retry_after=60.0) from error
        return model.embed(text)
