"""The models that clients choose from: the formats of debates, and teams."""

import time
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from parley.config.formats import FORMATS
from parley.runtime.errors import ParleyError, not_found
from parley.v1.debate_pb2 import DebateSpec


class Model(Struct, frozen=True):
    """A way to debate. `spec` is all of a debate but the question and what was said before it."""

    name: str
    spec: DebateSpec


class Catalogue:
    """The models by their names."""

    def __init__(self, models: Iterable[Model]) -> None:
        self._models = {each.name: each for each in models}
        self._created = int(time.time())

    def find(self, name: str) -> Model:
        """Return a model. Raise ParleyError, which names the known ones."""
        found = self._models.get(name)
        if found is None:
            raise _create_unknown_error(name, self._models)
        return found

    def describe(self, model: Model) -> dict[str, Any]:
        """Return the model as the protocol has it."""
        return {"id": model.name, "object": "model", "created": self._created, "owned_by": "parley"}

    def describe_all(self) -> dict[str, Any]:
        """Return the list of all models."""
        return {"object": "list", "data": [self.describe(each) for each in self._models.values()]}


def format_models() -> list[Model]:
    """Return a model for each format that a question can be put to."""
    models = [Model(each.name, DebateSpec(format=each.name)) for each in FORMATS]
    for each in models:
        go_unattended(each.spec)
    return models


def go_unattended(spec: DebateSpec) -> None:
    """Let the debate wait for no person: who asks for a completion cannot answer."""
    spec.ClearField("clarifications")
    if spec.format.partition("@")[0] == "moderated":
        spec.moderated.checkpoints = False


def _create_unknown_error(name: str, known: Iterable[str]) -> ParleyError:
    error = not_found("model", name[:100])
    error.message += f"; there are {', '.join(known)}"
    return error
