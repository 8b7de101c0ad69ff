"""A server is known by one spelling, and a key goes nowhere that the environment does not name."""

import pytest

from unreel.core.errors import InvalidSettingError
from unreel.core.server_keys import ServerAddress, parse_server_url, require_encrypted_connection


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


def test_no_key_travels_in_clear() -> None:
    require_encrypted_connection(parse_server_url("https://a.example"), "A_KEY")
    require_encrypted_connection(parse_server_url("http://127.0.0.1:8000"), "A_KEY")
    with pytest.raises(InvalidSettingError, match=r"A_KEY would be sent to a\.example in clear"):
        require_encrypted_connection(parse_server_url("http://a.example"), "A_KEY")
