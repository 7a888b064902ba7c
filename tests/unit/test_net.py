"""This node's address, and what keeps proxies out of the way."""

import socket

import pytest

from eray._io.interfaces import InterfaceAddress, local_addresses
from eray._io.net import is_local, node_address, port_is_open, proxy_variables, resolve, without_proxies
from eray.errors import AddressError, SettingError

INTERFACES = (
    InterfaceAddress("lo", "127.0.0.1"),
    InterfaceAddress("eth0", "10.0.0.7"),
    InterfaceAddress("ib0", "192.168.4.7"),
    InterfaceAddress("ib0", "fd00::7"),
    InterfaceAddress("six", "fd01::7"),
)


def address(names, interface=None, multi_node=True, not_here=(), name="n7", hostname="host7"):
    return node_address(
        name,
        interface,
        multi_node,
        hostname=hostname,
        look_up=lambda host: names.get(host, []),
        here=lambda found: found not in not_here,
        addresses=lambda: INTERFACES,
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"n7": ["10.0.0.7"]}, "10.0.0.7"),
        ({"n7": ["10.0.0.7"], "host7": ["192.168.4.7"]}, "10.0.0.7"),
        ({"host7": ["192.168.4.7"]}, "192.168.4.7"),
        ({"n7": ["fd00::7", "10.0.0.7"]}, "10.0.0.7"),
        ({"n7": ["fd00::7"]}, "fd00::7"),
        ({"n7": ["127.0.1.1"], "host7": ["10.0.0.7"]}, "10.0.0.7"),
        ({"n7": ["127.0.1.1", "10.0.0.7"]}, "10.0.0.7"),
        ({"n7": ["fe80::1%eth0", "10.0.0.7"]}, "10.0.0.7"),
    ],
)
def test_node_address_is_what_node_name_then_host_name_resolves_to(names, expected):
    assert address(names) == expected


def test_node_address_that_is_not_of_this_machine_is_passed_over():
    assert address({"n7": ["10.9.9.9"], "host7": ["10.0.0.7"]}, not_here=("10.9.9.9",)) == "10.0.0.7"
    with pytest.raises(AddressError, match=r"n7 resolves to 10.9.9.9, host7 resolves to nothing.*ERAY_INTERFACE"):
        address({"n7": ["10.9.9.9"]}, not_here=("10.9.9.9",))


@pytest.mark.parametrize(
    "names", [{"n7": ["127.0.1.1"]}, {"host7": ["127.0.1.1"]}, {"n7": ["::1"], "host7": ["127.0.0.1"]}]
)
def test_node_address_loopback_with_several_nodes_names_the_file(names):
    with pytest.raises(AddressError, match="/etc/hosts") as caught:
        address(names)
    assert caught.value.node == "n7"
    assert "ERAY_INTERFACE" in str(caught.value)
    assert address(names, multi_node=False) == "127.0.0.1"


def test_node_address_nothing_resolves():
    with pytest.raises(AddressError, match="n7 resolves to nothing, host7 resolves to nothing"):
        address({})
    assert address({}, multi_node=False) == "127.0.0.1"


@pytest.mark.parametrize(
    ("interface", "expected"),
    [
        ("eth0", "10.0.0.7"),
        ("ib0", "192.168.4.7"),
        ("six", "fd01::7"),
        ("192.168.0.0/16", "192.168.4.7"),
        ("fd00::/16", "fd00::7"),
        ("10.0.0.7", "10.0.0.7"),
        ("10.0.0.9/24", "10.0.0.7"),
        ("0.0.0.0/0", "10.0.0.7"),
    ],
)
def test_node_address_interface_decides(interface, expected):
    assert address({"n7": ["10.1.1.1"]}, interface) == expected


@pytest.mark.parametrize("interface", ["eth9", "172.16.0.0/12", "10.0.0.0/33", "300.0.0.0/8"])
def test_node_address_unknown_interface_lists_those_there(interface):
    with pytest.raises(SettingError, match=r"ERAY_INTERFACE=.*eth0 10\.0\.0\.7") as caught:
        address({}, interface)
    assert caught.value.value == interface


def test_node_address_loopback_interface_with_several_nodes_is_refused():
    with pytest.raises(AddressError, match="loopback"):
        address({}, "lo")
    assert address({}, "127.0.0.0/8", multi_node=False) == "127.0.0.1"


def test_local_addresses_knows_loopback_and_only_ours():
    found = local_addresses()
    assert InterfaceAddress("lo", "127.0.0.1") in found
    assert all(is_local(each.address) for each in found)


def test_local_addresses_version_6_without_link_local(tmp_path):
    table = tmp_path / "if_inet6"
    table.write_text(
        "fd000000000000000000000000000002 04 40 00 82     ib0\nfe8000000000000000fc00fffe000001 04 40 20 80     ib0\n"
    )
    assert [each for each in local_addresses(str(table)) if ":" in each.address] == [InterfaceAddress("ib0", "fd00::2")]
    assert all(":" not in each.address for each in local_addresses(str(tmp_path / "none")))


def test_is_local_of_documentation_address_is_false():
    assert is_local("127.0.0.1")
    assert not is_local("203.0.113.77")


def test_resolve_addresses_and_nonsense():
    assert resolve("127.0.0.1") == ["127.0.0.1"]
    assert resolve("localhost")[0] in ("127.0.0.1", "::1")
    assert resolve("x" * 64) == []
    assert resolve("") == []


def test_port_is_open_only_while_somebody_listens():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert port_is_open("127.0.0.1", port)
    assert not port_is_open("127.0.0.1", port)


def test_proxy_variables_in_both_spellings():
    environ = {"http_proxy": "http://p:1", "HTTPS_PROXY": "http://p:2", "grpc_proxy": "", "no_proxy": "x"}
    assert proxy_variables(environ) == {"http_proxy": "http://p:1", "HTTPS_PROXY": "http://p:2"}


PROXY = {"http_proxy": "http://p:1"}


@pytest.mark.parametrize(
    ("environ", "no_proxy", "no_grpc_proxy"),
    [
        ({}, None, None),
        ({"no_proxy": "a"}, None, None),
        (PROXY, "10.0.0.1,n1", "10.0.0.1,n1"),
        (PROXY | {"no_proxy": "a, b"}, "a,b,10.0.0.1,n1", "a,b,10.0.0.1,n1"),
        (PROXY | {"NO_PROXY": "a,n1"}, "a,n1,10.0.0.1", "a,n1,10.0.0.1"),
        (PROXY | {"no_proxy": "a", "no_grpc_proxy": "g"}, "a,10.0.0.1,n1", "g,10.0.0.1,n1"),
        (PROXY | {"no_proxy": "*"}, None, "10.0.0.1,n1"),
        (PROXY | {"no_grpc_proxy": "*"}, "10.0.0.1,n1", "10.0.0.1,n1"),
        ({"grpc_proxy": "p"}, "10.0.0.1,n1", "10.0.0.1,n1"),
    ],
)
def test_without_proxies_adds_hosts_and_keeps_what_was_listed(environ, no_proxy, no_grpc_proxy):
    values = without_proxies(environ, ["10.0.0.1", "n1"])
    assert values.get("no_proxy") == values.get("NO_PROXY") == no_proxy
    assert values.get("no_grpc_proxy") == no_grpc_proxy
