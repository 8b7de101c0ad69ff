"""Benchmarks of full size, made up in the schema of the real ones."""

import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

Cells = dict[str, Any]


@dataclass(frozen=True)
class SplitPlan:
    """How many videos of a split have traces, how many have several, and how many rows that makes."""

    split: str
    videos: int
    with_several: int
    fake_rows: int


# DeepTraceReward, table 3; of 3,318 generated videos 753 have two to six traces.
PLANS = (
    SplitPlan("train", 2654, 597, 3460),
    SplitPlan("val", 332, 76, 434),
    SplitPlan("test", 332, 80, 440),
)
EXPLAINED = 2717  # 62.7 % of 4,334
TAGGED = 2639  # 60.9 % of 4,334
MOST_TRACES = 6
UNNAMED = ("videos/stray-1.mp4", "videos/stray-2.mp4")
TAGS = (
    ["Shape Distortion (object)"],
    ["Sudden Blurring"],
    ["Weird Motion / Trajectory", "Liquid Motion"],
    ["Appearance of Redundant Object"],
    ["Object Merging"],
    ["Object Splitting"],
    ["Background Distortion"],
    ["Object Disappearance"],
    ["Unexpected Move"],
    ["Light Effect"],
)


def fake_row(number: int, split: str, video: str) -> Cells:
    """A sound annotation row of a generated video."""
    return {
        "video_id": video,
        "video_path": f"videos/{video}.mp4",
        "video_type": "fake_video",
        "video_source": "Kling 1.0",
        "split": split,
        "video_prompt": f"A dog catches ball {number}",
        "video_mime_type": "video/mp4",
        "video_width": 1280,
        "video_height": 720,
        "video_frame_rate": 30,
        "video_frame_count": 153,
        "video_duration": 5.1,
        "faketrace_bbox": {"left": 320, "top": 180, "width": 640, "height": 360},
        "faketrace_first_frame": number % 60,
        "faketrace_last_frame": number % 60 + 30,
        "faketrace_duration": 1.0,
        "faketrace_explanations": f"The paw melts ({number})" if number < EXPLAINED else "",
        "faketrace_check_applies": TAGS[number % len(TAGS)] if number < TAGGED else [],
    }


def real_row(number: int, split: str) -> Cells:
    """A sound row of a real video."""
    return {
        "video_id": f"real-{number}",
        "video_path": f"real_videos/real-{number}.mp4",
        "video_type": "real_video",
        "video_source": "LLaVA-Video-178K",
        "split": split,
        "video_prompt": "",
        "video_mime_type": "video/mp4",
        "video_width": 1055,
        "video_height": 623,
        "video_frame_rate": 29.97,
        "video_frame_count": 173,
        "video_duration": 5.78,
    }


def traces_per_video(plan: SplitPlan) -> Iterator[int]:
    """Two to six traces for `with_several` videos, one for the others; `fake_rows` in all."""
    left = plan.fake_rows - plan.videos - plan.with_several
    for number in range(plan.videos):
        if number >= plan.with_several:
            yield 1
            continue
        more = min(left, MOST_TRACES - 2)
        left -= more
        yield 2 + more


def deeptrace_rows() -> list[Cells]:
    """All 7,652 rows: generated ones first, as distributed."""
    fakes: list[Cells] = []
    for plan in PLANS:
        for video, n_traces in enumerate(traces_per_video(plan)):
            for _ in range(n_traces):
                name = f"fake-{plan.split}-{video}"
                fakes.append(fake_row(len(fakes), plan.split, name))
    splits = [plan.split for plan in PLANS for _ in range(plan.videos)]
    return fakes + [real_row(number, split) for number, split in enumerate(splits)]


def write_zip(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def split_file(path: Path, n_parts: int) -> None:
    """Cut `path` into `path.001`, ... and remove it."""
    data = path.read_bytes()
    size = -(-len(data) // n_parts)
    for number in range(n_parts):
        part = path.with_name(f"{path.name}.{number + 1:03d}")
        part.write_bytes(data[number * size : (number + 1) * size])
    path.unlink()


@pytest.fixture(scope="session")
def deeptrace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DeepTraceReward at full size: table, `videos.zip.001..004` and `real_videos.zip`."""
    root = tmp_path_factory.mktemp("deeptrace")
    rows = deeptrace_rows()
    (root / "all_data.json").write_text(json.dumps(rows), encoding="utf-8")
    named = dict.fromkeys(row["video_path"] for row in rows)
    for folder, archive, strays in (
        ("videos", "videos.zip", UNNAMED),
        ("real_videos", "real_videos.zip", ()),
    ):
        places = [place for place in named if place.startswith(f"{folder}/")] + list(strays)
        members = {f"{folder}/": b"", f"__MACOSX/{folder}/": b"", f"{folder}/.DS_Store": b"junk"}
        for place in places:
            members[place] = f"bytes of {place}".encode()
            members[f"__MACOSX/{folder}/._{Path(place).name}"] = b"junk"
        write_zip(root / archive, members)
    split_file(root / "videos.zip", 4)
    return root


CREATORS = ("Veo3.1-Fast/image+text", "Sora2/text", "Sora2/image+text", "StepVideo")
N_CLIPS = 149
N_EASY = 49


@pytest.fixture(scope="session")
def reality(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Video Reality Test at full size: 149 real clips and a twin of each from four folders."""
    root = tmp_path_factory.mktemp("reality")
    lines = ["clip,difficulty,prompt"]
    for number in range(N_CLIPS):
        difficulty = "easy" if number < N_EASY else "hard"
        lines.append(f'clip-{number:03d},{difficulty},"cutting soap, slowly"')
    (root / "clips.csv").write_text("\n".join(lines), encoding="utf-8")
    for folder in ("real", *CREATORS):
        (root / folder).mkdir(parents=True)
        for number in range(N_CLIPS):
            (root / folder / f"clip-{number:03d}.mp4").write_bytes(b"video")
    return root


def realism_row(number: int, split: str) -> Cells:
    """A clip with three annotators, in the columns of `unreel.benchmarks.loader`."""
    scores = next(islice(cycle([(1, 1, 2), (1, 2, 5), (4, 4, 4), (3, 4, 5)]), number % 4, None))
    row: Cells = {"video": f"clips/{number}.mp4", "split": split, "model": "Wan", "prompt": "p"}
    for annotator, score in enumerate(scores, start=1):
        row[f"score_{annotator}"] = score
        row[f"problem_description_{annotator}"] = f"problem by {annotator}"
        row[f"standard_adherence_{annotator}"] = f"adherence by {annotator}"
    return row


@pytest.fixture(scope="session")
def realism_rows() -> list[Cells]:
    """2,309 rows for training and 988 for the test."""
    splits = ["train"] * 2309 + ["test"] * 988
    return [realism_row(number, split) for number, split in enumerate(splits)]


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[[str, list[Cells]], Path]:
    """Write rows as a table of the kind that its name says."""

    def write(name: str, rows: list[Cells]) -> Path:
        path = tmp_path / name
        if path.suffix == ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        elif path.suffix == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.Table.from_pylist(rows), path)
        else:
            import csv

            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, fieldnames=list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        return path

    return write
