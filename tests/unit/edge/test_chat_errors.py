"""Errors of the orchestrator in the form that OpenAI's clients read."""

import json

import grpc
import pytest

from parley.edge.chat.errors import to_error_response
from parley.runtime.errors import (
    FieldViolation,
    ParleyError,
    internal,
    invalid_argument,
    permission_denied,
    resource_exhausted,
    unauthenticated,
    unavailable,
)


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"),
    [
        (unauthenticated("NO_CREDENTIALS", "who?"), 401, "authentication_error", "no_credentials"),
        (permission_denied("ROLE_REQUIRED", "no"), 403, "permission_error", "role_required"),
        (resource_exhausted("BUDGET_USED_UP", "later"), 429, "rate_limit_error", "budget_used_up"),
        (unavailable("DRAINING", "again"), 503, "server_error", "draining"),
        (internal("oh"), 500, "server_error", "internal"),
        (ParleyError(grpc.StatusCode.DEADLINE_EXCEEDED, "", "slow"), 504, "server_error", None),
    ],
)
def test_an_error_keeps_its_reason_and_gets_the_status_and_type_of_its_kind(
    error: ParleyError, status: int, kind: str, code: str | None
) -> None:
    answer = to_error_response(error)
    told = json.loads(bytes(answer.body))["error"]
    assert (answer.status_code, told["type"], told["code"], told["param"]) == (status, kind, code, None)
    assert told["message"] == error.message


def test_who_shall_wait_is_told_how_long_in_whole_seconds() -> None:
    error = resource_exhausted("TOO_MANY_DEBATES", "later", retry_after=0.2)
    assert to_error_response(error).headers["Retry-After"] == "1"
    assert "Retry-After" not in to_error_response(internal("oh")).headers


@pytest.mark.parametrize(
    ("field", "param"),
    [
        ("spec.question", "messages"),
        ("spec.context[3].text", "messages"),
        ("request_id", "Idempotency-Key"),
        ("spec.agents[0].agent_id", "spec.agents[0].agent_id"),
    ],
)
def test_a_bad_field_is_named_as_the_client_knows_it(field: str, param: str) -> None:
    answer = to_error_response(invalid_argument([FieldViolation(field, "is bad")]))
    assert (answer.status_code, json.loads(bytes(answer.body))["error"]["param"]) == (400, param)
