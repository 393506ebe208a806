from collections.abc import Sequence

from parley.runtime.identity.certificates import CertificateRule, Certificates
from parley.runtime.identity.guard import Credentials
from parley.v1.access_pb2 import ACCESS_ROLE_READ, ACCESS_ROLE_SERVICE

RULES = [
    CertificateRule("spiffe://mesh/parley/*", "", frozenset({ACCESS_ROLE_SERVICE})),
    CertificateRule("*.acme.example", "acme", frozenset({ACCESS_ROLE_READ})),
]


async def tenant_of(
    names: Sequence[str], common_name: str = "", written: str = "", rules: Sequence[CertificateRule] = RULES
) -> str | None:
    certificate = {
        "x509_subject_alternative_name": [each.encode() for each in names],
        "x509_common_name": [common_name.encode()],
    }
    identity = await Certificates(rules).identify(Credentials("", "", written, lambda: certificate))
    return identity.tenant if identity else None


async def test_a_rule_tells_whose_certificate_it_is_and_what_the_caller_writes_does_not() -> None:
    assert await tenant_of(["ci.acme.example"], written="other") == "acme"
    assert await tenant_of([], "ci.acme.example") == "acme"
    assert await tenant_of(["ci.other.example"], "CI.ACME.EXAMPLE") is None


async def test_a_service_says_which_tenant_it_acts_for() -> None:
    assert await tenant_of(["spiffe://mesh/parley/orchestrator"], written="other") == "other"
    assert await tenant_of(["spiffe://mesh/parley/orchestrator"], written="a/b") is None


async def test_the_first_rule_that_fits_counts_and_without_a_certificate_none_does() -> None:
    both = ["ci.acme.example", "spiffe://mesh/parley/x"]
    assert await tenant_of(both, written="other") == "other"
    assert await tenant_of(both, written="other", rules=RULES[::-1]) == "acme"
    shown = Credentials("", "", "acme", dict)
    assert await Certificates([CertificateRule("*", "acme", frozenset())]).identify(shown) is None
