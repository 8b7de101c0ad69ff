"""The same run, here and on Ray, gives the same rows."""

import csv
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("ray", reason="needs the extra ray: pip install 'unreel[ray]'")

from unreel.evaluation.run_job import evaluate
from unreel.evaluation.scoring import score_run

CHAT_SERVER = Path(__file__).parents[1] / "chaos" / "chat_server.py"
OF_THE_WAY = ("latency_us",)
"""The one column that may differ: how long the answer took."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer over a real clip than a user would wait."""
    monkeypatch.setenv("UNREEL_MEDIA_SECONDS", "300")


@contextmanager
def frame_reader(folder: Path) -> Iterator[str]:
    """A server whose answer depends on the frames that it is shown, as a model's name."""
    (folder / "asked").mkdir(parents=True)
    process = subprocess.Popen(
        [sys.executable, str(CHAT_SERVER), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield f"compatible/tiny@http://127.0.0.1:{int(process.stdout.readline())}/asked/v1"
    finally:
        process.stdin.close()
        process.wait(timeout=30)
        process.stdout.close()


def gather_clips(shared: Path, folder: Path, n_clips: int) -> Path:
    """`n_clips` of the shared clips, spread over all of them; a repeat is made distinct in bytes.

    A key is made of a clip's bytes, so a plain copy would be the same question. A copy has a box
    behind it that players skip: the same pictures, another clip.
    """
    with (shared / "clips" / "manifest.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    step = max(1, len(rows) // n_clips)
    lines = ["file,label,generator,group"]
    for number in range(n_clips):
        turn, place = divmod(number * step, len(rows))
        row, name = rows[place], f"{turn}-{rows[place]['clip_id']}.mp4"
        box = (16).to_bytes(4, "big") + b"free" + turn.to_bytes(8, "big") if turn else b""
        (folder / name).write_bytes((shared / "clips" / row["file"]).read_bytes() + box)
        lines.append(f"{name},{row['label']},{row['generator']},{turn}-{row['group']}")
    manifest = folder / "manifest.csv"
    manifest.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return manifest


def compare_engines(start: Any, shared: Path, folder: Path, n_clips: int) -> None:
    (folder / "clips").mkdir()
    manifest = gather_clips(shared, folder / "clips", n_clips)
    condition = [{"sampling": "uniform-4"}]
    with frame_reader(folder / "server") as model:
        here, there = (
            start(out=out, benchmark=manifest, model=model, condition=condition)
            for out in ("here", "there")
        )
        evaluate(here, engine="local")
        evaluate(there, engine="ray")
    rows, others = (
        {row["key"]: {n: v for n, v in row.items() if n not in OF_THE_WAY} for row in found}
        for found in (here.answers.rows(), there.answers.rows())
    )
    assert len(rows) == n_clips
    assert {row["failure_reason"] for row in rows.values()} == {None}
    assert {row["text"] for row in rows.values()} == {"<answer>0</answer>", "<answer>1</answer>"}
    assert rows == others
    assert score_run(here) == score_run(there)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)
def test_local_and_ray_give_the_same_rows_and_scorecards(
    start: Any, shared: Path, tmp_path: Path
) -> None:
    compare_engines(start, shared, tmp_path, 12)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)
def test_local_and_ray_agree_on_three_hundred_clips(
    start: Any, shared: Path, tmp_path: Path
) -> None:
    compare_engines(start, shared, tmp_path, 300)
