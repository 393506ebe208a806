import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.runtime.errors import ParleyError
from parley.runtime.identity.guard import Credentials
from parley.runtime.identity.identity import Identity
from parley.runtime.identity.service_tokens import ServiceSigner, ServiceTokens
from parley.runtime.labels import label_scope
from parley.v1.access_pb2 import ACCESS_ROLE_SERVICE

OLD, NEW = b"o" * 32, b"n" * 32


class Time:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def sign(tenant: str, secret: bytes = NEW, time: Time | None = None) -> str:
    with label_scope(tenant=tenant):
        ((_, token),) = ServiceSigner("orchestrator", lambda: (secret,), time or Time()).headers()
    return token


async def identify(token: str, *secrets: bytes, time: Time | None = None) -> Identity | None:
    tokens = ServiceTokens(lambda: secrets or (NEW,), time or Time())
    return await tokens.identify(Credentials("", token, "another", dict))


async def test_a_service_acts_for_the_tenant_of_its_work_alone() -> None:
    expected = Identity("acme", "service orchestrator", frozenset({ACCESS_ROLE_SERVICE}))
    assert await identify(sign("acme")) == expected


@given(place=st.integers(0, 200), put=st.characters(codec="ascii"))
async def test_no_character_of_a_token_can_be_another(place: int, put: str) -> None:
    token = sign("acme")
    place %= len(token)
    forged = token[:place] + put + token[place + 1 :]
    assert (await identify(forged) is None) == (forged != token)


async def test_while_a_secret_is_replaced_both_are_believed_and_a_third_is_not() -> None:
    assert await identify(sign("acme", OLD), NEW, OLD) is not None
    assert await identify(sign("acme", OLD), NEW) is None


async def test_a_token_that_leaked_is_soon_worth_nothing_and_none_is_sent_that_is_about_to_end() -> None:
    time, late = Time(), Time()
    token = sign("acme", time=time)
    late.now += 355
    assert await identify(token, time=late) is not None
    late.now += 10
    with pytest.raises(ParleyError, match="expired"):
        await identify(token, time=late)
    early = Time()
    early.now -= 65
    with pytest.raises(ParleyError, match="expired"):
        await identify(token, time=early)


def test_a_signer_signs_once_for_some_minutes_and_anew_for_another_tenant() -> None:
    time = Time()
    signer = ServiceSigner("orchestrator", lambda: (NEW,), time)
    with label_scope(tenant="acme"):
        first = signer.headers()
        time.now += 100
        assert signer.headers() == first
        time.now += 60
        assert signer.headers() != first
    with label_scope(tenant="other"):
        assert signer.headers() != first
