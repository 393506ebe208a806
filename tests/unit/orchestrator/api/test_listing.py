import pytest

from parley.orchestrator.api.listing import listing_of
from parley.orchestrator.formats.shipped import all_formats
from parley.runtime.errors import ParleyError
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, DEBATE_STATUS_FAILED
from parley.v1.orchestrator_pb2 import ListDebatesRequest


@pytest.mark.parametrize("name", ["a\0b", "x" * 65])
def test_a_format_that_no_debate_can_have_is_refused_with_its_field(name: str) -> None:
    with pytest.raises(ParleyError) as refused:
        listing_of(ListDebatesRequest(format=name), all_formats())
    assert [each.field for each in refused.value.violations] == ["format"]
    assert listing_of(ListDebatesRequest(format="x" * 64), all_formats()).debate_filter.formats == ("x" * 64,)


def test_a_state_that_is_asked_for_often_is_looked_for_once() -> None:
    request = ListDebatesRequest(statuses=[DEBATE_STATUS_FAILED, DEBATE_STATUS_COMPLETED] * 1000)
    assert listing_of(request, all_formats()).debate_filter.statuses == ("FAILED", "COMPLETED")
