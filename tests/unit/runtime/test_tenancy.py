import pytest

from parley.runtime.errors import ParleyError
from parley.runtime.logs import labelled
from parley.runtime.tenancy import current_tenant


def test_a_call_without_a_tenant_is_the_default_ones() -> None:
    assert current_tenant() == "default"


def test_a_call_is_its_tenants() -> None:
    with labelled(tenant="team-a"):
        assert current_tenant() == "team-a"


@pytest.mark.parametrize("name", ["", "a/b", "a b", "-a", "ä", "a" * 65, "a\0", "a\n"])
def test_a_name_that_could_be_taken_for_another_part_of_a_key_is_refused(name: str) -> None:
    with labelled(tenant=name), pytest.raises(ParleyError, match="parley-tenant"):
        current_tenant()
