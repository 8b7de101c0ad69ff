"""How soon `unreel review` asks: seconds from typing it to its first question at a server on loopback.

    python benchmarks/first_question.py --starts 10 BEFORE/bin/unreel AFTER/bin/unreel

Commands take turns, so that a busy minute is busy for all; the first start of each only warms the disk.
Processor time is that of the whole command, and hardly depends on what else runs. Nothing leaves this
machine.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

LONGEST_S = 60
_MESSAGE = {"role": "assistant", "content": "<answer>0</answer>"}
_REPLY = json.dumps({"choices": [{"finish_reason": "stop", "message": _MESSAGE}]}).encode()


@dataclass(frozen=True)
class Start:
    """What one start of a command took."""

    asked_s: float
    """From typing it to its first question."""
    cpu_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="+", help="the `unreel` of each side")
    parser.add_argument("--starts", type=int, default=10, help="that are counted, for each side")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    starts: dict[str, list[Start]] = {command: [] for command in asked.commands}
    with tempfile.TemporaryDirectory(prefix="unreel-start-") as folder, _server() as (url, asked_s):
        clip = _draw(Path(folder))
        for number in range(asked.starts + 1):
            for command, counted in starts.items():
                start = _start(command, clip, url=url, asked_s=asked_s)
                print(f"start {number}, {command}: {start}", file=sys.stderr)
                if number:
                    counted.append(start)
    figures = {command: _summary(counted) for command, counted in starts.items()}
    print(json.dumps(figures, indent=2) if asked.json else _table(figures))


@contextmanager
def _server() -> Iterator[tuple[str, SimpleQueue[float]]]:
    """Its address, and the instants of the machine's clock at which questions came."""
    asked_s: SimpleQueue[float] = SimpleQueue()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked_s.put(time.monotonic())
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", str(len(_REPLY)))
            self.end_headers()
            self.wfile.write(_REPLY)

        def log_message(self, *_: object) -> None:
            """Silence."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", asked_s
        finally:
            server.shutdown()


def _draw(folder: Path) -> Path:
    from unreel.media.synthesise import ClipRecipe, synthesise

    clip = folder / "drawn.mp4"
    clip.write_bytes(synthesise(ClipRecipe(width=640, height=360, n_frames=48, gop=24)))
    return clip


def _start(command: str, clip: Path, *, url: str, asked_s: SimpleQueue[float]) -> Start:
    typed = [command, "review", str(clip), "--model", f"vllm/still@{url}", "--protocol", "reality"]
    before_s, began_s = _cpu_s(), time.monotonic()
    done = subprocess.run(typed, capture_output=True, text=True, check=False, timeout=LONGEST_S)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return Start(asked_s=asked_s.get_nowait() - began_s, cpu_s=_cpu_s() - before_s)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _summary(starts: list[Start]) -> dict[str, Any]:
    asked_s, cpu_s = [start.asked_s for start in starts], [start.cpu_s for start in starts]
    return {
        "asked_s": round(statistics.median(asked_s), 3),
        "asked_s_range": [round(min(asked_s), 3), round(max(asked_s), 3)],
        "cpu_s": round(statistics.median(cpu_s), 3),
        "cpu_s_range": [round(min(cpu_s), 3), round(max(cpu_s), 3)],
        "starts": len(starts),
    }


def _table(figures: dict[str, dict[str, Any]]) -> str:
    lines = [
        "| command | first question after, s | processor time, s | starts |",
        "|---|---|---|---|",
    ]
    for command, each in figures.items():
        cells = [
            f"{each[name]:.2f} ({each[f'{name}_range'][0]:.2f} to {each[f'{name}_range'][1]:.2f})"
            for name in ("asked_s", "cpu_s")
        ]
        lines.append(f"| {command} | {' | '.join(cells)} | {each['starts']} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
