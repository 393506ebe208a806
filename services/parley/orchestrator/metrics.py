"""What the orchestrator measures, through the OpenTelemetry meter."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from parley.runtime import telemetry

_meter: Final = telemetry.meter(__name__)
# Bounded, since a caller that chooses its own tenant name could create labels without end.
_tenants: Final = telemetry.BoundedNames()
_SECONDS: Final = (1, 2, 5, 10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600, 7200, 14400)
"""A debate takes from seconds (a demonstration) to hours (it waits for a person)."""
_WAIT_SECONDS: Final = (1, 5, 15, 60, 300, 900, 3600, 14_400, 43_200, 86_400, 259_200, 604_800)
"""A wait for providers takes seconds or more, one for a person up to days."""
_APPEND_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

_running: Final = _meter.create_up_down_counter(
    "parley.debates.running", "{debate}", "Debates that this replica owns now."
)
_duration: Final = _meter.create_histogram(
    "parley.debate.duration",
    "s",
    "From a debate's creation to its end, by format and outcome: completed, cancelled or failed.",
    explicit_bucket_boundaries_advisory=_SECONDS,
)
_waits: Final = _meter.create_counter(
    "parley.debate.waits", "{wait}", "Times that a debate began to wait for a person or for providers."
)
_wait_duration: Final = _meter.create_histogram(
    "parley.debate.wait.duration",
    "s",
    "How long a debate waited, by format and reason: a person or providers.",
    explicit_bucket_boundaries_advisory=_WAIT_SECONDS,
)
_claims: Final = _meter.create_counter(
    "parley.debate.claims", "{claim}", "Claims of debates by outcome: taken, or lost to another replica."
)
_appends: Final = _meter.create_histogram(
    "parley.log.append.duration",
    "s",
    "One append to a debate's log, repetitions included.",
    explicit_bucket_boundaries_advisory=_APPEND_SECONDS,
)
_watchers: Final = _meter.create_up_down_counter(
    "parley.watchers", "{watcher}", "Streams that follow debates at this replica."
)
_tenant_debates: Final = _meter.create_counter(
    "parley.tenant.debates", "{debate}", "Debates that ended, by tenant."
)
_tenant_tokens: Final = _meter.create_counter(
    "parley.tenant.tokens", "{token}", "Tokens of debates that ended, by tenant."
)
_tenant_cost: Final = _meter.create_counter(
    "parley.tenant.cost", "{microdollar}", "Millionths of a US dollar of debates that ended, by tenant."
)
_deliveries: Final = _meter.create_counter(
    "parley.deliveries",
    "{try}",
    "Tries to send a delivery to a hook, by outcome: delivered, failed (it is tried again) or dead.",
)
_oldest_delivery: Final = _meter.create_gauge(
    "parley.delivery.oldest", "s", "How long the delivery has waited that waits longest, on all replicas."
)


def initialize() -> None:
    """Report 0: a metric without a value would look like a replica that is down."""
    _running.add(0)
    _watchers.add(0)


@contextmanager
def count_running() -> Iterator[None]:
    """Count a debate as owned by this replica while the block runs."""
    _running.add(1)
    try:
        yield
    finally:
        _running.add(-1)


@contextmanager
def count_watcher() -> Iterator[None]:
    """Count a stream that follows a debate while the block runs."""
    _watchers.add(1)
    try:
        yield
    finally:
        _watchers.add(-1)


def count_claim(*, taken: bool) -> None:
    """Count a claim."""
    _claims.add(1, {"parley.outcome": "taken" if taken else "lost"})


def record_append(seconds: float) -> None:
    """Record how long an append took."""
    _appends.record(seconds)


def count_wait(debate_format: str) -> None:
    """Count that a debate began to wait."""
    _waits.add(1, {"parley.format": debate_format})


def record_wait_end(debate_format: str, waited_for: str, seconds: float) -> None:
    """Record how long a debate waited for `person` or `providers`."""
    _wait_duration.record(seconds, {"parley.format": debate_format, "parley.waited_for": waited_for})


def record_debate_end(
    debate_format: str, outcome: str, seconds: float, *, tenant: str, tokens: int, cost_micros: int
) -> None:
    """Record the end of a debate, and what it used up to its answer."""
    _duration.record(seconds, {"parley.format": debate_format, "parley.outcome": outcome})
    labels = {"parley.tenant": _tenants.label(tenant)}
    _tenant_debates.add(1, labels)
    if tokens:
        _tenant_tokens.add(tokens, labels)
    if cost_micros:
        _tenant_cost.add(cost_micros, labels)


def count_delivery(outcome: str) -> None:
    """Count a try to send a delivery: `delivered`, `failed` or `dead`."""
    _deliveries.add(1, {"parley.outcome": outcome})


def set_oldest_delivery(seconds: float) -> None:
    """Set how long the delivery has waited that waits longest; 0 if none waits."""
    _oldest_delivery.set(seconds)
