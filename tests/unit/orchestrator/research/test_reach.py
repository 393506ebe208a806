"""Which addresses may be reached."""

from ipaddress import ip_address, ip_network

import pytest

from parley.orchestrator.research.reach import Reach, is_public


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "93.184.216.34",
        "2606:4700:4700::1111",
        "::ffff:1.1.1.1",
        "64:ff9b::1.1.1.1",
        "2002:101:101::1",
    ],
)
def test_a_public_address_may_be_reached(address: str) -> None:
    assert Reach().allows(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.0.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "192.0.0.192",
        "192.168.1.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "2002:a9fe:a9fe::1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff0e::1",
    ],
)
def test_no_other_address_may_be_reached(address: str) -> None:
    assert not is_public(ip_address(address))
    assert not Reach().allows(ip_address(address))


def test_a_range_that_is_named_may_be_reached_and_no_other() -> None:
    reach = Reach((ip_network("10.1.0.0/16"), ip_network("fd00:1::/32")))
    assert reach.allows(ip_address("10.1.2.3"))
    assert reach.allows(ip_address("::ffff:10.1.2.3"))
    assert reach.allows(ip_address("fd00:1::5"))
    assert not reach.allows(ip_address("10.2.0.1"))
    assert not reach.allows(ip_address("127.0.0.1"))
