"""What callers are told of a store that is damaged, and of one that is away."""

import grpc
import pytest

from parley.runtime.errors import ParleyError
from parley.storage.ports import KeyMissingError, StorageError, StoreDamagedError, StoreUnavailableError
from parley.storage.service_errors import map_store_errors


def test_damage_is_told_as_it_is_and_not_to_be_tried_again() -> None:
    with pytest.raises(ParleyError) as raised, map_store_errors():
        raise StoreDamagedError("x.db is damaged; restore a backup")
    error = raised.value
    assert (error.code, error.reason) == (grpc.StatusCode.DATA_LOSS, "STORE_DAMAGED")
    assert error.message == "x.db is damaged; restore a backup"
    assert error.retry_after is None


def test_a_key_that_is_missing_is_named_and_not_to_be_tried_again() -> None:
    with pytest.raises(ParleyError) as raised, map_store_errors():
        raise KeyMissingError(
            "PARLEY_ENCRYPTION_KEYS: stored data is encrypted by the key 5f0c; name its file"
        )
    error = raised.value
    assert (error.code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "ENCRYPTION_KEY_MISSING")
    assert "the key 5f0c" in error.message
    assert error.retry_after is None


def test_trouble_that_may_pass_says_what_it_is() -> None:
    for kind in (StorageError, StoreUnavailableError):
        with pytest.raises(ParleyError) as raised, map_store_errors("the store of x"):
            raise kind("the disk of x.db is full; free some room and try again")
        error = raised.value
        assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        assert error.message.startswith("the store of x failed: the disk of x.db is full")
        assert error.retry_after == 1.0
