"""A server of ours is waited for, heard when it fails, and gone when it is ended."""

import os
import socket
from pathlib import Path

import pytest

from unreel.core.errors import InvalidSettingError, MachineError
from unreel.core.managed_server import ManagedServer, require_free_port


class Shouting(ManagedServer):
    def plain_line(self, line: str) -> str:
        return line.removeprefix("INFO ")


def started(folder: Path, script: str) -> ManagedServer:
    environment = {"PATH": os.defpath}
    command = ["sh", "-c", script]
    return Shouting("Cook", command, folder=folder, log="cook.log", environment=environment)


def test_it_is_up_when_it_answers_and_what_it_says_till_then_is_told(tmp_path: Path) -> None:
    (tmp_path / "cook.log").write_text("what an earlier one said\n")
    server = started(tmp_path, "echo INFO chopping; sleep 1; touch up; sleep 60")
    told: list[str] = []
    try:
        server.wait_until((tmp_path / "up").exists, told.append, seconds=60)
        assert server.is_alive
    finally:
        server.end()
    assert told == ["starting Cook: chopping"]
    assert not server.is_alive


def test_one_that_ends_is_told_with_its_last_lines(tmp_path: Path) -> None:
    server = started(tmp_path, "echo INFO no salt; echo ----; exit 3")
    with pytest.raises(MachineError, match="Cook ended") as caught:
        server.wait_until(lambda: False, lambda _said: None, seconds=60)
    assert caught.value.__notes__ == ["  no salt"]
    with pytest.raises(MachineError, match="Cook ended"):
        server.wait()


def test_one_that_does_not_come_up_is_given_up(tmp_path: Path) -> None:
    server = started(tmp_path, "sleep 60")
    try:
        with pytest.raises(MachineError, match="Cook was not up after 0 s"):
            server.wait_until(lambda: False, lambda _said: None, seconds=0.1)
    finally:
        server.end()


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_port_where_somebody_listens_is_refused(family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family) as listening:
        try:
            listening.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
        listening.listen()
        port = listening.getsockname()[1]
        with pytest.raises(InvalidSettingError, match="give another with --port"):
            require_free_port(host, port)
    require_free_port(host, port)
