"""How soon `unreel review` asks: seconds from typing it to its first question at a server on loopback.

    python benchmarks/first_question.py --starts 10 BEFORE/bin/unreel AFTER/bin/unreel

Commands take turns, so that a busy minute is busy for all; the first start of each only warms the disk.
Nothing leaves this machine.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

LONGEST_S = 60
_MESSAGE = {"role": "assistant", "content": "<answer>0</answer>"}
_REPLY = json.dumps({"choices": [{"finish_reason": "stop", "message": _MESSAGE}]}).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="+", help="the `unreel` of each side")
    parser.add_argument("--starts", type=int, default=10, help="that are counted, for each side")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    took: dict[str, list[float]] = {command: [] for command in asked.commands}
    with tempfile.TemporaryDirectory(prefix="unreel-start-") as folder, _server() as (url, asked_s):
        clip = _draw(Path(folder))
        for number in range(asked.starts + 1):
            for command, seconds in took.items():
                lap_s = _start(command, clip, url=url, asked_s=asked_s)
                if number:
                    seconds.append(lap_s)
                    print(f"start {number}, {command}: {lap_s:.2f} s", file=sys.stderr)
    figures = {command: _summary(seconds) for command, seconds in took.items()}
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


def _start(command: str, clip: Path, *, url: str, asked_s: SimpleQueue[float]) -> float:
    typed = [command, "review", str(clip), "--model", f"vllm/still@{url}", "--protocol", "reality"]
    began_s = time.monotonic()
    done = subprocess.run(typed, capture_output=True, text=True, check=False, timeout=LONGEST_S)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return asked_s.get_nowait() - began_s


def _summary(seconds: list[float]) -> dict[str, Any]:
    return {
        "median_s": round(statistics.median(seconds), 3),
        "range_s": [round(min(seconds), 3), round(max(seconds), 3)],
        "starts": len(seconds),
    }


def _table(figures: dict[str, dict[str, Any]]) -> str:
    lines = ["| command | first question after, s | range | starts |", "|---|---|---|---|"]
    lines += [
        f"| {command} | {each['median_s']:.2f} | {each['range_s'][0]:.2f} to {each['range_s'][1]:.2f} | {each['starts']} |"
        for command, each in figures.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
