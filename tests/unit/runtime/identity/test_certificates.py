from collections.abc import Sequence

import pytest

from parley.runtime.identity.certificates import CertificateRule, Certificates
from parley.runtime.identity.guard import Credentials
from parley.v1.access_pb2 import ACCESS_ROLE_READ, ACCESS_ROLE_SERVICE

READ = frozenset({ACCESS_ROLE_READ})
RULES = [
    CertificateRule("uri:spiffe://mesh/parley/*", "", frozenset({ACCESS_ROLE_SERVICE})),
    CertificateRule("dns:*.acme.example", "acme", READ),
]
KINDS = ("uri", "dns", "email", "cn")


async def tenant_of(
    names: Sequence[str], common_name: str = "", written: str = "", rules: Sequence[CertificateRule] = RULES
) -> str | None:
    """Identify a certificate by names such as `dns:a.example`, as gRPC describes it."""
    parts = [each.partition(":") for each in names]
    certificate = {
        "x509_subject_alternative_name": [name.encode() for _, _, name in parts],
        "x509_common_name": [common_name.encode()],
        **{f"peer_{kind}": [name.encode() for each, _, name in parts if each == kind] for kind in KINDS},
    }
    identity = await Certificates(rules).identify(Credentials("", "", written, lambda: certificate))
    return identity.tenant if identity else None


async def test_a_rule_tells_whose_certificate_it_is_and_what_the_caller_writes_does_not() -> None:
    assert await tenant_of(["dns:ci.acme.example"], written="other") == "acme"
    assert await tenant_of(["dns:ci.other.example"]) is None


async def test_a_rule_matches_names_of_its_own_kind() -> None:
    name = "a@b.umbrella.example"
    for kind in KINDS:
        rules = [CertificateRule(f"{kind}:*.umbrella.example", "umbrella", READ)]
        for other in ("uri", "dns", "email"):
            found = await tenant_of([f"{other}:{name}"], rules=rules)
            assert found == ("umbrella" if other == kind else None), (kind, other)


async def test_a_common_name_counts_only_without_other_names() -> None:
    rules = [CertificateRule("cn:ci", "acme", READ)]
    assert await tenant_of([], "ci", rules=rules) == "acme"
    assert await tenant_of([], "other", rules=rules) is None
    for name in ("dns:ci.example", "email:ci@acme.example", "ip:127.0.0.1"):
        assert await tenant_of([name], "ci", rules=rules) is None
    assert await tenant_of([], "ci.acme.example") is None, "it is no DNS name"


@pytest.mark.parametrize(
    ("subject", "instead"),
    [
        ("spiffe://acme/*", "uri:"),
        ("*.acme.example", "dns:"),
        ("*@acme.example", "email:"),
        ("CN:ci", "dns:"),
        ("dns:", "dns:"),
    ],
)
def test_a_rule_that_does_not_name_what_it_matches_is_refused_and_says_what_to_write(
    subject: str, instead: str
) -> None:
    with pytest.raises(ValueError, match="must say what it matches") as refused:
        CertificateRule(subject, "acme", READ)
    assert f"(this one: {instead})" in str(refused.value)


async def test_a_service_says_which_tenant_it_acts_for() -> None:
    assert await tenant_of(["uri:spiffe://mesh/parley/orchestrator"], written="other") == "other"
    assert await tenant_of(["uri:spiffe://mesh/parley/orchestrator"], written="a/b") is None


async def test_the_first_rule_that_fits_counts_and_without_a_certificate_none_does() -> None:
    both = ["dns:ci.acme.example", "uri:spiffe://mesh/parley/x"]
    assert await tenant_of(both, written="other") == "other"
    assert await tenant_of(both, written="other", rules=RULES[::-1]) == "acme"
    shown = Credentials("", "", "acme", dict)
    for kind in KINDS:
        rules = [CertificateRule(f"{kind}:*", "acme", frozenset())]
        assert await Certificates(rules).identify(shown) is None
