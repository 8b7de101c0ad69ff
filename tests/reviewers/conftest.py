"""A fault server for the whole session, and sheets to put."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from facts import FACTS
from unreel.core.clip import Clip, ClipId
from unreel.core.content_ids import digest
from unreel.core.question import Condition, Instrument
from unreel.reviewers.contract import ClipInput, ReviewRequest, ShownFrame

_RUNS = count(1)


@dataclass(frozen=True)
class FaultRun:
    """One run against the server: its address as a model name, and what the server saw of it."""

    port: int
    fault: str
    percent: int
    number: int

    @property
    def model(self) -> str:
        path = f"{self.fault}/{self.percent}/{self.number}"
        return f"vllm/tiny@http://127.0.0.1:{self.port}/{path}/v1"

    def stats(self) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.port}/stats/{self.number}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=10) as response:
            found: dict[str, Any] = json.load(response)
        return found


@pytest.fixture(scope="session")
def fault_port() -> Iterator[int]:
    script = Path(__file__).with_name("fault_server.py")
    server = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin
    assert server.stdout
    try:
        yield int(server.stdout.readline())
    finally:
        server.stdin.close()
        server.kill()
        server.wait(timeout=10)
        server.stdout.close()


@pytest.fixture
def fault_run(fault_port: int) -> Callable[[str, int], FaultRun]:
    return lambda fault, percent: FaultRun(fault_port, fault, percent, next(_RUNS))


@pytest.fixture
def make_sheet() -> Callable[..., ReviewRequest]:
    def make(
        number: int = 0,
        *,
        protocol: str = "reality",
        condition: Condition | None = None,
        prompt: str = "Real or fake?",
        n_clips: int = 1,
        **shown: Any,
    ) -> ReviewRequest:
        first = ShownFrame(index=0, at_s=Fraction(0), width=320, height=180, jpeg=b"\xff\xd8one")
        second = replace(first, index=25, at_s=Fraction(1), jpeg=b"two")
        frames = (first, second)
        exhibits = tuple(
            ClipInput(
                clip=Clip(
                    id=ClipId(digest("clip", str(number), str(place))),
                    location=f"clips/{number}-{place}.mp4",
                    facts=FACTS,
                ),
                **{"frames": frames, **shown},
            )
            for place in range(n_clips)
        )
        return ReviewRequest(
            key=digest("question", str(number)),
            instrument=Instrument(protocol, 1),
            prompt=prompt,
            inputs=exhibits,
            condition=condition or Condition(),
        )

    return make
