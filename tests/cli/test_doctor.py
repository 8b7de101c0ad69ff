"""`unreel doctor` tells what is wrong and what to do."""

import json
import socket
from importlib.metadata import requires

import pytest

from unreel.cli.doctor import BRINGS


def test_extras_are_named_with_what_they_bring(run) -> None:
    shown = run("doctor").stdout
    declared = {
        line.rpartition("==")[2].strip(" '\"")
        for line in requires("unreel") or ()
        if "extra" in line
    }
    for extra in declared:
        assert f"unreel[{extra}]" in shown
    assert set(json.loads(run("doctor", "--json").stdout)["extras"]) == declared
    assert all(words in shown for extra, words in BRINGS.items() if extra in declared)


def test_a_store_that_is_configured_is_knocked_at(run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        endpoint = f"http://127.0.0.1:{door.getsockname()[1]}"
        monkeypatch.setenv("UNREEL_S3_ENDPOINT", endpoint)
        assert f"yes  {endpoint}" in run("doctor").stdout


def test_a_store_without_an_address_is_told_with_what_to_do(
    run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNREEL_S3_ENDPOINT", "my-store")
    done = run("doctor")
    assert done.returncode == 1
    assert "NO   my-store" in done.stdout
    assert "http://host:port" in done.stdout
