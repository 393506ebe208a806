import pytest
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    DocumentTooLarge,
    NetworkTimeout,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WTimeoutError,
)

from parley.storage.mongodb.database import map_errors
from parley.storage.ports import StorageError, StoreUnavailableError


def explain(error: Exception) -> Exception:
    with pytest.raises((StorageError, ValueError)) as raised, map_errors():
        raise error
    return raised.value


@pytest.mark.parametrize(
    "error",
    [
        AutoReconnect("connection closed"),
        NetworkTimeout("timed out"),
        ServerSelectionTimeoutError("no servers, Timeout: 10s, Topology Description: <…>"),
        WTimeoutError("waiting for replication timed out", 64),
        OperationFailure("operation exceeded time limit", 50, {"errorLabels": ["RetryableWriteError"]}),
        OperationFailure("primary stepped down", 189, {"errorLabels": ["RetryableWriteError"]}),
    ],
)
async def test_what_may_pass_is_unavailable_in_one_line(error: PyMongoError) -> None:
    seen = explain(error)
    assert isinstance(seen, StoreUnavailableError)
    assert "\n" not in str(seen)
    assert "Topology" not in str(seen)


async def test_a_search_for_a_server_that_lost_its_lock_is_worth_another_try() -> None:
    seen = explain(RuntimeError("cannot wait on un-acquired lock"))
    assert isinstance(seen, StoreUnavailableError)
    with pytest.raises(RuntimeError, match="ours"), map_errors():
        raise RuntimeError("one of ours")


async def test_of_many_writes_that_failed_the_first_one_says_why() -> None:
    refused = {"index": 1, "code": 121, "errmsg": "Document failed validation"}
    error = BulkWriteError({"writeErrors": [refused], "writeConcernErrors": []})
    assert str(explain(error)) == "MongoDB: Document failed validation"


async def test_many_writes_that_the_replica_set_may_have_lost_are_worth_another_try() -> None:
    lost = {"code": 189, "errmsg": "primary stepped down"}
    seen = explain(BulkWriteError({"writeErrors": [], "writeConcernErrors": [lost]}))
    assert isinstance(seen, StoreUnavailableError)
    assert "primary stepped down" in str(seen)


@pytest.mark.parametrize("code", [13, 18])
async def test_a_refused_user_is_told_where_to_look(code: int) -> None:
    seen = explain(OperationFailure("Authentication failed.", code))
    assert type(seen) is StorageError
    assert "PARLEY_STORE" in str(seen)


async def test_what_the_server_does_not_understand_is_not_worth_another_try() -> None:
    assert type(explain(OperationFailure("unknown operator", 2))) is StorageError


async def test_what_is_too_large_is_the_callers_fault() -> None:
    assert type(explain(DocumentTooLarge("BSON document too large"))) is ValueError
