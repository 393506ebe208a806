import pytest

from parley.orchestrator.api.reading import contributions_page
from parley.v1.orchestrator_pb2 import ListContributionsRequest

_MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("wanted", "most"), [(0, 2 * _MEBIBYTE), (1, 1), (12 * _MEBIBYTE + 1, 12 * _MEBIBYTE)]
)
def test_a_page_takes_the_bytes_asked_for_two_mebibytes_by_default_and_twelve_at_most(
    wanted: int, most: int
) -> None:
    assert contributions_page(ListContributionsRequest(debate_id="d", page_bytes=wanted)).max_bytes == most
