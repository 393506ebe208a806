import string
from urllib.parse import quote

import grpc
import pytest
from google.rpc import status_pb2
from hypothesis import given
from hypothesis import strategies as st

from parley.runtime import errors
from parley.runtime.errors import FieldViolation, ParleyError

NAMES = st.text(string.ascii_uppercase + "_", min_size=1)
TEXT = st.text(max_size=20)


def as_rpc_error(
    code: grpc.StatusCode, details: bytes | None = None, message: str = "no"
) -> grpc.aio.AioRpcError:
    trailing = [(errors.DETAILS_KEY, details)] if details is not None else []
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), message)


@given(
    st.builds(
        ParleyError,
        code=st.sampled_from([code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]),
        reason=NAMES,
        message=TEXT,
        metadata=st.dictionaries(TEXT, TEXT, max_size=3),
        violations=st.lists(st.builds(FieldViolation, field=TEXT, description=TEXT), max_size=3).map(tuple),
        retry_after=st.none() | st.integers(0, 10**9).map(lambda millis: millis / 1000),
        resource=st.none() | st.tuples(TEXT, TEXT),
    )
)
def test_an_error_reads_back_as_it_was_sent(error: ParleyError) -> None:
    read = errors.from_status(status_pb2.Status.FromString(errors.to_status(error).SerializeToString()))
    assert vars(read) == vars(error)


@given(
    message=st.text() | st.sampled_from(["ж" * 5000, "x" * 5000, "%" * 2001, "🙂" * 2000]),
    violations=st.lists(st.builds(FieldViolation, field=TEXT, description=TEXT), max_size=200),
    times=st.sampled_from([1, 30, 1000]),
    metadata=st.dictionaries(TEXT, st.sampled_from(["", "ж" * 5000]), max_size=9),
    name=st.sampled_from(["", "n" * 9000]),
)
def test_an_error_of_any_size_fits_into_what_grpc_carries(
    message: str, violations: list[FieldViolation], times: int, metadata: dict[str, str], name: str
) -> None:
    many = tuple(FieldViolation(each.field, each.description * times) for each in violations)
    code = grpc.StatusCode.INVALID_ARGUMENT
    status = errors.to_status(ParleyError(code, "R" * 40, message, metadata, many, 1.0, ("debate", name)))
    assert status.ByteSize() <= 4096
    assert len(quote(status.message, safe=string.punctuation.replace("%", "") + " ")) <= 2000
    read = errors.from_status(status)
    assert read.code is code
    assert len(read.violations) == len(many) or read.metadata["violations"] == str(len(many))


def test_of_very_many_bad_fields_the_first_are_told_and_how_many_there_are() -> None:
    error = errors.invalid_argument(FieldViolation(f"agents[{n}].id", "is empty") for n in range(5000))
    read = errors.from_status(errors.to_status(error))
    assert read.violations[:2] == error.violations[:2]
    assert 20 < len(read.violations) < 5000
    assert read.metadata == {"violations": "5000"}
    assert read.message.startswith("agents[0].id: is empty; agents[1].id: is empty; ")
    assert read.message.endswith("more")
    assert len(read.message) <= 2000


def test_a_message_of_more_than_two_thousand_characters_is_shortened() -> None:
    told = errors.to_status(errors.internal("x" * 2001)).message
    assert (len(told), told[-1]) == (1992, "…")
    assert errors.to_status(errors.internal("x" * 2000)).message == "x" * 2000


def test_a_bad_request_names_every_bad_field_in_its_message() -> None:
    error = errors.invalid_argument(
        [FieldViolation("question", "must not be empty"), FieldViolation("rounds", "must be 1 or more")]
    )
    assert str(error) == "question: must not be empty; rounds: must be 1 or more"


def test_a_missing_resource_is_named_in_reason_message_and_resource() -> None:
    error = errors.not_found("debate", "deb-1")
    assert (error.reason, error.message) == ("DEBATE_NOT_FOUND", "debate 'deb-1' not found")
    assert error.resource == ("debate", "deb-1")


def test_a_status_of_another_domain_keeps_its_code_and_has_no_reason() -> None:
    status = errors.to_status(errors.unavailable("X", "gone"))
    foreign = status.details[0].value.replace(b"parley", b"others")
    status.details[0].value = foreign
    error = errors.from_rpc_error(as_rpc_error(grpc.StatusCode.UNAVAILABLE, status.SerializeToString()))
    assert (error.code, error.reason, error.message) == (grpc.StatusCode.UNAVAILABLE, "", "gone")


def test_details_that_are_no_status_are_passed_over() -> None:
    error = errors.from_rpc_error(as_rpc_error(grpc.StatusCode.ABORTED, b"\xff\xff"))
    assert (error.code, error.reason, error.message) == (grpc.StatusCode.ABORTED, "", "no")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (as_rpc_error(grpc.StatusCode.UNAVAILABLE), True),
        (as_rpc_error(grpc.StatusCode.CANCELLED), True),
        (as_rpc_error(grpc.StatusCode.UNKNOWN), True),
        (as_rpc_error(grpc.StatusCode.INTERNAL), True),
        (as_rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED), False),
        (as_rpc_error(grpc.StatusCode.RESOURCE_EXHAUSTED), False),
        (errors.unavailable(errors.DRAINING, "stopping"), True),
        (errors.unavailable("ALL_ROUTES_OPEN", "no route"), False),
        (errors.internal("broken"), False),
        (ConnectionError(), False),
    ],
)
def test_only_a_call_that_broke_on_its_way_is_a_transport_failure(
    error: Exception, *, expected: bool
) -> None:
    assert errors.is_transport(error) is expected
