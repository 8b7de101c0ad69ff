"""The Ray that a run starts: nobody else reaches it, reads its token or its files."""

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from unreel.core.settings import override_environment

pytest.importorskip("ray", reason="needs the extra `ray`")

DRIVER = """
import json, os, sys, threading, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import psutil, ray
from unreel.engine.ray_runner import RayRunner
from unreel.engine.stage import WorkerResources, Stage

class Echo(Stage):
    resources = WorkerResources(cpus=1, in_flight=2)
    def __call__(self, row):
        return row | {"text": "heard"}

class Kept:
    def __init__(self): self.rows = []
    def add(self, row): self.rows.append(row)

before = dict(os.environ)
for _ in range(int(sys.argv[1])):
    kept = Kept()
    with RayRunner() as runner:
        runner.run([{"key": "a", "attempt": 1}], [Echo()], sink=kept, ledger=Path("ledger"))
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        names = {one.pid: one.name() for one in processes if one.is_running()}
        lasting = [one for one in processes[1:] if names.get(one.pid) in {"raylet", "gcs_server"}]
        print(json.dumps({
            "text": kept.rows[0]["text"],
            "address": ray.get_runtime_context().gcs_address,
            "folder": ray._private.worker._global_node.get_temp_dir_path(),
            "listening": [
                (names[socket.pid], socket.laddr.ip)
                for socket in psutil.net_connections("tcp")
                if socket.status == "LISTEN" and socket.pid in names
            ],
            "commands": [one.cmdline() for one in lasting],
            "tokens": sorted({one.environ()["RAY_AUTH_TOKEN"] for one in lasting}),
            "changed": sorted({name for name, _ in set(os.environ.items()) ^ set(before.items())}),
        }), flush=True)
        sys.stdin.readline()
print(json.dumps(sorted({name for name, _ in set(os.environ.items()) ^ set(before.items())})), flush=True)
"""
KNOCK = """
import sys
from ray._raylet import GcsClient
print(GcsClient(address=sys.argv[1]).internal_kv_keys(b"", None, timeout=10))
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Iterator[subprocess.Popen[str]]:
    """A run on Ray twice in one process, each held open until a line comes."""
    folder = tmp_path_factory.mktemp("driver")
    with override_environment({"HOME": str(folder)}):
        started = subprocess.Popen(
            [sys.executable, "-c", DRIVER, "2"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
    with started:
        yield started


@pytest.fixture(scope="module")
def told(driver) -> dict:
    return json.loads(driver.stdout.readline())


def test_a_run_works_and_listens_on_loopback_alone(told) -> None:
    assert told["text"] == "heard"
    assert {"raylet", "gcs_server"} <= {name for name, _ in told["listening"]}
    assert [
        one for one in told["listening"] if one[1] not in {"127.0.0.1", "::ffff:127.0.0.1"}
    ] == []


def test_its_token_is_in_the_environment_of_its_processes_and_nowhere_else(told, driver) -> None:
    (token,) = told["tokens"]
    assert len(token) == 64
    assert token not in json.dumps(told["commands"])
    folder = Path(told["folder"]).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if token.encode() in path.read_bytes()] == []
    home = Path(f"/proc/{driver.pid}/cwd").readlink()
    assert not (home / ".ray").exists()


def _knock(address: str, **words: str) -> subprocess.CompletedProcess[str]:
    with override_environment(words):
        return subprocess.run(
            [sys.executable, "-c", KNOCK, address], check=False, capture_output=True, text=True
        )


def test_who_has_no_token_is_refused_and_who_has_it_is_not(told) -> None:
    (token,) = told["tokens"]
    known = _knock(told["address"], RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token)
    assert known.returncode == 0, known.stderr
    assert known.stdout.startswith("[b")  # then a quote, of either kind
    for words in (
        {"RAY_AUTH_MODE": "disabled"},
        {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64},
    ):
        refused = _knock(told["address"], **words)
        assert refused.returncode != 0
        assert "uthentic" in refused.stderr
