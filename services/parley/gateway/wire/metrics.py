"""What requests to models take, by the semantic conventions for generative AI."""

from time import monotonic
from typing import Final

from parley.gateway.wire.api import ModelReply
from parley.gateway.wire.spans import error_type
from parley.runtime import telemetry

__all__ = ["Operation"]

_meter: Final = telemetry.meter(__name__)
# Of an open provider any model may be named.
_models: Final = telemetry.BoundedNames()
_tokens: Final = _meter.create_histogram(
    "gen_ai.client.token.usage",
    "{token}",
    "Tokens of one request, read and written.",
    explicit_bucket_boundaries_advisory=[4**power for power in range(14)],
)
_duration: Final = _meter.create_histogram(
    "gen_ai.client.operation.duration",
    "s",
    "One request to a model.",
    explicit_bucket_boundaries_advisory=[0.01 * 2**power for power in range(14)],
)


class Operation:
    """One request to a model, from when this is made until `end`."""

    def __init__(self, provider: str, model: str, server: dict[str, str | int]) -> None:
        """Begin; `server` are the attributes that say where it goes."""
        self._began = monotonic()
        self._attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": _models.label(model),
            **server,
        }

    def end(self, reply: ModelReply, error: BaseException | None) -> None:
        """Note what it took; `error` is what it failed with."""
        failed = {"error.type": error_type(error)} if error is not None else {}
        _duration.record(monotonic() - self._began, {**self._attributes, **failed})
        for kind, tokens in (("input", reply.input_tokens), ("output", reply.output_tokens)):
            if tokens:
                _tokens.record(tokens, {**self._attributes, "gen_ai.token.type": kind})
