import pytest

from parley.orchestrator.engine.document_limits import DocumentLimits

LIMITS = DocumentLimits(total=80, per_tenant=50)


@pytest.mark.parametrize(
    ("owned", "tenant", "size", "has_room"),
    [
        ([], "a", 1000, True),
        ([("a", 0)], "a", 1000, True),
        ([("a", 40)], "a", 10, True),
        ([("a", 40)], "a", 11, False),
        ([("a", 50)], "a", 0, True),
        ([("a", 50)], "b", 30, True),
        ([("a", 50), ("b", 30)], "b", 1, False),
        ([("a", 50), ("b", 30)], "c", 10, True),
        ([("a", 50), ("b", 30)], "c", 11, False),
    ],
    ids=[
        "alone",
        "next to one without documents",
        "within the limit of its tenant",
        "beyond the limit of its tenant",
        "without documents",
        "of another tenant",
        "beyond the limit of all",
        "within the extra room of a tenant without any",
        "beyond the extra room",
    ],
)
def test_a_debate_has_room_within_the_limits_of_all_and_of_its_tenant(
    owned: list[tuple[str, int]],
    tenant: str,
    size: int,
    *,
    has_room: bool,
) -> None:
    assert LIMITS.has_room(owned, tenant, size, brief=False) is has_room


def test_a_debate_that_is_owned_for_a_moment_has_a_quarter_more() -> None:
    assert LIMITS.has_room([("a", 80)], "a", 20, brief=True)
    assert not LIMITS.has_room([("a", 80)], "a", 21, brief=True)


def test_without_limits_there_is_always_room() -> None:
    assert DocumentLimits().has_room([("a", 10**12)], "a", 10**12, brief=False)
