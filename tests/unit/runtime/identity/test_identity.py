from contextvars import copy_context
from pathlib import Path

import pytest

from parley.runtime.errors import ParleyError
from parley.runtime.identity.guard import OPEN, Credentials, Guard, bearer_token
from parley.runtime.identity.identity import Identity, current_tenant, set_identity


def make_credentials(tenant: str = "", bearer: str = "", service_token: str = "") -> Credentials:
    return Credentials(bearer, service_token, tenant, dict)


async def test_where_nobody_is_asked_a_call_is_its_writers_tenants_or_the_default_ones() -> None:
    assert current_tenant() == "default"
    for written, tenant in (("", "default"), ("team-a", "team-a")):
        identity = await OPEN.admit("any/Method", make_credentials(written))
        assert (identity.tenant, identity.proven) == (tenant, False)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "-a", "ä", "a" * 65, "a\0", "a\n"])
def test_a_name_that_could_be_taken_for_another_part_of_a_key_is_refused(name: str) -> None:
    context = copy_context()
    context.run(set_identity, Identity(name, proven=False))
    with pytest.raises(ParleyError, match="parley-tenant"):
        context.run(current_tenant)


def test_a_key_stands_behind_the_word_bearer_however_it_is_written() -> None:
    found = [bearer_token(each) for each in ("Bearer k", "bearer  k ", "Basic k", "Bearer", "k", "")]
    assert found == ["k", "k", "", "", "", ""]


async def test_who_shows_nothing_is_told_which_guide_says_where_their_own_token_is() -> None:
    with pytest.raises(
        ParleyError, match=r"; docs/guides/http\.md says where the token of your own parley up is$"
    ):
        await Guard().admit("parley.v1.OrchestratorService/ListDebates", make_credentials())
    guide = Path(__file__).parents[4] / "docs/guides/http.md"
    assert "\n## The token of your own parley up\n" in guide.read_text("utf-8")
