"""A zygote that has warmed up a task has loaded all that the task needs, whatever the file."""

import json
import subprocess
import sys
from pathlib import Path

import crafted_matroska
import pytest
from test_cost import DECODERS
from tiny_clips import MP4, make

from unreel.core.errors import SandboxError
from unreel.media.messages import TaskReplyPayload
from unreel.media.sandbox import FileSandbox
from unreel.media.tasks import TASKS

# Runs one task warm, then on each file named, and prints what was imported or mapped meanwhile.
WATCHED = """
import io, json, sys
from pathlib import Path
from unreel.core.errors import MediaError
from unreel.media.messages import deliver_task_result
from unreel.media.sandbox.zygote import _REQUESTS, warm_up_task
from unreel.media.tasks import TASKS

def loaded():
    maps = Path("/proc/self/maps").read_text().splitlines()
    return set(sys.modules) | {line.split()[-1] for line in maps if ".so" in line}

name, folder, others = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
warm_up_task(name, TASKS[name])
before, found = loaded(), {}
for path in sorted(folder.iterdir()):
    for request in (*_REQUESTS[name], *others):
        try:
            deliver_task_result(TASKS[name](io.BytesIO(path.read_bytes()), request), lambda part: None)
        except MediaError:
            pass
    if new := loaded() - before:
        found[path.name] = sorted(new)
        before |= new
print(json.dumps(found))
"""


PIECE = {"first_frame": 0, "end_frame": 4, "length_s": None, "crop": None}
FORM = {"width": 48, "height": 32, "rate": "25/1", "crf": 30, "sound": "dropped"}
CROP = {"left": 0, "top": 0, "width": 32, "height": 32}
OTHERS: dict[str, list[dict[str, object]]] = {
    "frames": [
        {"sampling": "uniform-8", "longest_side": 16, "most_pixels": 200},
        {"sampling": "fps-1-max-8", "max_pixels": 10_000},
    ],
    "normalise": [{"form": FORM}],
    "render": [
        {"frame_range": PIECE, "form": FORM, "speed": "2/1"},
        {"frame_range": PIECE | {"crop": CROP}, "form": FORM | {"sound": "kept"}, "speed": "1/2"},
        {"frame_range": PIECE, "form": None, "speed": "2/1"},
    ],
    "instants": [{"at_us": [0]}],
    "annotate": [{"commentary": {"lanes": [], "notes": [], "duration_us": 333_333}}],
}
"""Requests that differ from those of the warm-up."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clips of every container and decoder, whole and cut in half, and streams of other kinds."""
    folder = tmp_path_factory.mktemp("files")
    for name, recipe in DECODERS.items():
        data = make(recipe)
        (folder / name).write_bytes(data)
        (folder / f"half-{name}").write_bytes(data[: len(data) // 2])
    crafted = crafted_matroska.crafted()
    for name in ("mkv-attachment.mkv", "mkv-subtitles-only.mkv"):
        (folder / name).write_bytes(crafted[name])
    return folder


@pytest.mark.parametrize("task", TASKS)
def test_no_file_makes_a_warm_task_load_anything(task: str, files: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", WATCHED, task, str(files), json.dumps(OTHERS.get(task, []))],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {}


def test_a_task_that_cannot_be_warmed_up_is_a_fault_of_the_installation(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(make(MP4))
    with FileSandbox(tasks="broken_tasks:TASKS") as sandbox:
        assert isinstance(sandbox("fine", clip, {}), TaskReplyPayload)
        with pytest.raises(SandboxError, match="did not start: ImportError"):
            sandbox("probe", clip, {})
        assert isinstance(sandbox("fine", clip, {}), TaskReplyPayload)
