"""What the contract has to say of each of its RPCs."""

import pytest
from google.protobuf.descriptor import MethodDescriptor

from parley.v1.access_pb2 import (
    ACCESS_ROLE_UNSPECIFIED,
    CALL_QUEUE_NONE,
    CALL_QUEUE_UNSPECIFIED,
    needs,
    queue,
)
from tests.support.access import methods

METHODS = methods()
UNBOUNDED = {
    "WatchDebate": "waits nearly all the time, and its streams are counted",
    "CreateKey": "is rare",
    "ListKeys": "is rare",
    "RevokeKey": "is rare",
}
"""RPCs of the orchestrator of which any number of a tenant's calls are worked on at a time, and why."""


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.full_name)
def test_every_rpc_names_the_role_that_its_callers_need(method: MethodDescriptor) -> None:
    assert method.GetOptions().Extensions[needs] != ACCESS_ROLE_UNSPECIFIED, (
        f"{method.full_name}: add `option (needs) = ACCESS_ROLE_…;` to the RPC, or nobody may call it"
    )


def test_only_these_rpcs_are_worked_on_without_a_bound() -> None:
    of_orchestrator = [each for each in METHODS if each.containing_service.name == "OrchestratorService"]
    unbounded = {
        each.name for each in of_orchestrator if each.GetOptions().Extensions[queue] == CALL_QUEUE_NONE
    }
    assert unbounded == UNBOUNDED.keys()


@pytest.mark.parametrize(
    "method",
    [each for each in METHODS if each.containing_service.name != "OrchestratorService"],
    ids=lambda each: each.full_name,
)
def test_calls_of_services_wait_in_no_queue_of_a_tenant(method: MethodDescriptor) -> None:
    assert method.GetOptions().Extensions[queue] == CALL_QUEUE_UNSPECIFIED
