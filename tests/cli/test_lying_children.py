"""Commands that are given files which take over the process that reads them, with innocent ones between."""

import json
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from synthesise import ClipRecipe, synthesise

SANDBOX = Path(__file__).parents[1] / "media" / "sandbox"
sys.path.insert(0, str(SANDBOX))

from lies import lying  # noqa: E402  found in that folder
from lying_tasks import LIES  # noqa: E402

SECONDS = 2
SLOW = {name for name in LIES if "drip" in name or "sleep" in name}
"""They take all the time that they have."""
MOST_KB = 1 << 20
# All that is exchanged is the table of tasks that the confined process loads.
BOOT = f"""
import sys; sys.path.insert(0, {str(SANDBOX)!r})
from unreel.media import access
access.open_file_sandbox.__kwdefaults__["tasks"] = "lying_tasks:TASKS"
from unreel.report.review import provenance
provenance._TASKS = "lying_manifests:TASKS"
from unreel.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def clip_bytes() -> bytes:
    return synthesise(ClipRecipe(width=64, height=64, n_frames=12))


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """A reviewer on loopback that wants frames and finds every clip real."""
    said = {"role": "assistant", "content": "<answer>1</answer>"}
    reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny"}
    reply["choices"] = [{"index": 0, "finish_reason": "stop", "message": said}]
    data = json.dumps(reply).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Silence."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"compatible/tiny@http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def _files(folder: Path, clip: bytes, names: Sequence[str]) -> list[Path]:
    """A clip for each of the lies, each with an innocent one after it."""
    files: list[Path] = []
    for name in names:
        files += [folder / f"{name}.mp4", folder / f"innocent-{name}.mp4"]
        files[-2].write_bytes(lying(name, clip))
        files[-1].write_bytes(clip)
    return files


# In between, since the system counts for a process what its parent held, and for a parent all it ever started.
WEIGH = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(done.returncode)
"""


def _told_by(*tasks: str) -> list[str]:
    return [name for name, told in LIES.items() if told.task in tasks]


def _run(folder: Path, *arguments: object) -> tuple[subprocess.CompletedProcess[str], int]:
    """What the command did, and the most memory that it or a process of its took, in kB."""
    peak = folder / "peak"
    done = subprocess.run(
        [sys.executable, "-c", WEIGH, peak, sys.executable, "-c", BOOT, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "UNREEL_MEDIA_SECONDS": str(SECONDS)},
        timeout=900,
    )
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert done.returncode == 1, done.stderr[-3000:]
    return done, int(peak.read_text())


def test_a_probe_tells_every_innocent_clip_beside_the_liars(
    tmp_path: Path, clip_bytes: bytes
) -> None:
    files = _files(tmp_path, clip_bytes, _told_by("probe"))
    done, peak_kb = _run(tmp_path, "probe", *files, "--json")
    rows = json.loads(done.stdout)
    assert [row["file"] for row in rows] == [str(file) for file in files]
    for row in rows:
        name = Path(row["file"]).stem
        if name.startswith("innocent-"):
            assert row["facts"]["video"]["n_frames"] == 12, row
        elif not LIES[name].quiet:
            assert row["failure"]["reason"], row
    assert peak_kb < MOST_KB
    quiet = [file for file in files if file.stem in LIES and LIES[file.stem].quiet]
    _run(
        tmp_path, "probe", *quiet, tmp_path / "silence.mp4"
    )  # in words: nothing that cannot be said


def _believed(names: Sequence[str]) -> int:
    return sum(LIES[name].quiet for name in names)


def test_an_evaluation_answers_every_innocent_clip_beside_the_liars(
    tmp_path: Path, clip_bytes: bytes, model: str
) -> None:
    pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
    names = [name for name in _told_by("probe", "frames") if name not in SLOW][::3]
    files = _files(tmp_path, clip_bytes, names)
    for number, file in enumerate(files):  # clips of one content are one question
        side = "real" if number % 4 < 2 else "generated/Veo"
        (tmp_path / "films" / side).mkdir(parents=True, exist_ok=True)
        data = file.read_bytes()
        if file.stem not in LIES:
            data += struct.pack(">I4sI", 12, b"free", number)
        (tmp_path / "films" / side / file.name).write_bytes(data)
    asked = ("eval", "films", "--model", model, "--protocol", "reality", "--nframe", 4, "--json")
    done, peak_kb = _run(tmp_path, *asked)
    answers = json.loads(done.stdout)["outcome"]["answers"]
    assert len(names) <= answers["done"] <= len(names) + _believed(names)
    assert peak_kb < MOST_KB
