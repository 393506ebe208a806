"""Which addresses may be reached."""

from ipaddress import ip_address, ip_network

import pytest

from parley.orchestrator.outgoing.reach import Reach, is_public, parse_hosts


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


def test_hosts_and_networks_are_read_from_one_list() -> None:
    hosts, networks = parse_hosts("Hooks.Internal., 10.1.0.0/16,localhost,10.2.0.1,fd00:1::/32")
    assert hosts == {"hooks.internal", "localhost"}
    assert list(map(str, networks)) == ["10.1.0.0/16", "10.2.0.1/32", "fd00:1::/32"]
    reach = Reach(hosts=hosts)
    assert reach.names_host("HOOKS.internal")
    assert reach.names_host("hooks.internal.")
    assert not reach.names_host("other.hooks.internal")
    assert not reach.names_host("internal")


@pytest.mark.parametrize(
    "entry",
    ["10.1.0.1/16", "*.internal", "http://a.example", "a.example:80", "a b", "2130706433", "a..b", "-a"],
)
def test_what_is_no_host_and_no_network_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match="is no host and no network"):
        parse_hosts(entry)
