"""A server is known by one spelling, and a key goes nowhere that the environment does not name."""

import pytest

from unreel.core.errors import InvalidSettingError
from unreel.core.server_keys import (
    OWN_KEY,
    ServerAddress,
    find_server_key_variable,
    normalise_host,
    parse_server_url,
    require_encrypted_connection,
)


@pytest.mark.parametrize(
    ("url", "server", "told"),
    [
        ("https://LLM.example.org/v1", ServerAddress(scheme="https", host="llm.example.org", port=443), "llm.example.org"),
        ("http://127.0.0.1:8000", ServerAddress(scheme="http", host="127.0.0.1", port=8000), "127.0.0.1:8000"),
        ("http://[0:0::1]:80/a", ServerAddress(scheme="http", host="::1", port=80), "[::1]"),
    ],
)  # fmt: skip
def test_an_address_has_one_spelling(url: str, server: ServerAddress, told: str) -> None:
    assert parse_server_url(url) == server
    assert str(server) == told


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org",
        "http://user@example.org",
        "http://example.org:0",
        "http://example.org:65536",
        "http://[::g]/",
        "http://[1::2::3]",
        "http://exämple.org",
        "http://example.org?x=1",
    ],
)
def test_anything_else_is_no_address(url: str) -> None:
    with pytest.raises(InvalidSettingError, match="scheme, host, port and path"):
        parse_server_url(url)


def test_what_is_no_host_has_no_spelling() -> None:
    assert normalise_host("[1::2::3]") is None
    assert normalise_host("A.example") == "a.example"


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("::2", False),
        ("10.0.0.1", False),
        ("example.org", False),
    ],
)
def test_this_machine_is_known_without_asking_anybody(host: str, here: bool) -> None:  # noqa: FBT001
    assert ServerAddress(scheme="http", host=host, port=80).is_loopback is here


@pytest.mark.parametrize(
    ("url", "named", "variable"),
    [
        ("https://a.example", "a.example", OWN_KEY),
        ("https://a.example", "b.example, a.example=A_KEY", "A_KEY"),
        ("https://a.example:8443", "a.example", None),
        ("https://a.example:8443", "a.example:8443=B", "B"),
        ("http://[::1]:80", "[0::1]", OWN_KEY),
        ("https://a.example", "", None),
    ],
)
def test_a_key_goes_to_the_host_and_port_that_are_named(
    url: str, named: str, variable: str | None
) -> None:
    assert find_server_key_variable(parse_server_url(url), named) == variable


@pytest.mark.parametrize("named", ["http://a.example", "a.example=1KEY", "[1::2::3]"])
def test_a_setting_that_names_no_host_is_refused(named: str) -> None:
    with pytest.raises(InvalidSettingError, match="UNREEL_KEY_HOSTS"):
        find_server_key_variable(parse_server_url("https://a.example"), named)


def test_no_key_travels_in_clear() -> None:
    require_encrypted_connection(parse_server_url("https://a.example"), "A_KEY")
    require_encrypted_connection(parse_server_url("http://127.0.0.1:8000"), "A_KEY")
    with pytest.raises(InvalidSettingError, match=r"A_KEY would be sent to a\.example in clear"):
        require_encrypted_connection(parse_server_url("http://a.example"), "A_KEY")
