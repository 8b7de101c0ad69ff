"""Adapters of public benchmarks: the rows of a table of clips from the files of the owner.

An adapter takes the folder of a download and yields rows with the columns of `manifest.jsonl`. A row
with the key `omitted`, a reason, is counted and not written. The facts behind an adapter are in the
entry of its benchmark.
"""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from unreel.core.errors import UnreadableSourceError
from unreel.core.input_files import parse_json, read_limited_bytes

Row = dict[str, object]
_SUFFIXES = frozenset({".mp4", ".mov", ".mkv", ".webm", ".avi", ".gif", ".m4v"})
_TABLE_BYTES = 256 << 20
_DOWNLOAD_AGAIN = "Delete the folder and download it again"


def read_vif_bench(folder: Path) -> Iterator[Row]:
    """Yield the clips of `source_videos/Real` and `source_videos/Fake/GENERATOR`; equal names are twins."""
    for path in iter_videos(folder / "source_videos", folder):
        kind, *between = path.parts[1:-1]
        creator = "/".join(between) if kind == "Fake" else ""
        yield _build_row(path, creator=creator, is_real=kind == "Real", group=path.stem)


def read_genbuster_bench(folder: Path) -> Iterator[Row]:
    """Yield the clips of `{id,ood,wild}/real` and `{id,ood,wild}/fake/GENERATOR`; the track is the split."""
    for path in iter_videos(folder, folder):
        tracks = [part for part in path.parts if part in {"id", "ood", "wild"}]
        if not tracks:
            continue
        kind, *between = path.parts[path.parts.index(tracks[-1]) + 1 : -1]
        yield _build_row(path, creator="/".join(between), is_real=kind == "real", split=tracks[-1])


def read_video_reality_test(folder: Path) -> Iterator[Row]:
    """Yield the clips of the hard and the easy part; clips with the name of a real clip are its twins."""
    prompts: dict[tuple[str, str], str] = {}
    for difficulty, table in (
        ("hard", "Real_ASMR_Prompt.csv"),
        ("easy", "Real_ASMR_easy/prompt.csv"),
    ):
        for row in _read_csv(folder / table) if (folder / table).is_file() else ():
            name = PurePosixPath(str(row.get("ref") or "")).stem
            prompts[difficulty, name] = str(row.get("text") or "")
    for path in iter_videos(folder, folder):
        top, *between = path.parts[:-1]
        difficulty = "easy" if top.endswith("_easy") else "hard"
        creator, *setting = between if top == "Fake_ASMR_easy" else [top, *between]
        yield _build_row(
            path,
            creator=creator,
            is_real=top in {"Real_ASMR", "Real_ASMR_easy"},
            setting="/".join(setting),
            group=f"{difficulty}/{path.stem}",
            difficulty=difficulty,
            prompt=prompts.get((difficulty, path.stem), ""),
        )


def read_deepfake_eval_2024(folder: Path) -> Iterator[Row]:
    """Yield the rows of `video-metadata-publish.csv` that state whether the video is real."""
    places = _index_names(folder)
    for row in _read_csv(folder / "video-metadata-publish.csv"):
        name, truth = row["Filename"].strip(), row["Video Ground Truth"].strip().lower()
        if truth not in {"real", "fake"}:
            yield {"omitted": f"Video Ground Truth is {row['Video Ground Truth'].strip()!r}"}
            continue
        path = places.get(name, PurePosixPath("video-data") / name)
        split = row["Finetuning Set"].strip().lower()
        yield _build_row(path, is_real=truth == "real", split=split)


_LOKI_TYPE = re.compile(r"video_tf_video_(real|fake)_ask_(?:real|fake)_(.+)")


def read_loki(folder: Path) -> Iterator[Row]:
    """Yield the clips of `true_or_false.json`, whose question types contain label and generator.

    The two clips of a question of `multi_choice.json` are a pair; the name of its real clip is the group.
    """
    places = _index_names(folder)
    truths: dict[str, tuple[bool, str]] = {}
    for row in _read_json(folder / "true_or_false.json"):
        kind = _LOKI_TYPE.fullmatch(row["question_type"])
        if kind:
            truths[row["video_path"]] = kind[1] == "real", kind[2]
    groups: dict[str, str] = {}
    for row in _read_json(folder / "multi_choice.json"):
        real = [path for path in row["video_path"] if truths.get(path, (False, ""))[0]]
        for path in row["video_path"] if len(real) == 1 else ():
            groups.setdefault(path, PurePosixPath(real[0]).stem)
    for location, (is_real, creator) in truths.items():
        path = places.get(PurePosixPath(location).name, PurePosixPath(location))
        yield _build_row(path, creator=creator, is_real=is_real, group=groups.get(location, ""))


def read_aigvdbench(folder: Path) -> Iterator[Row]:
    """Yield the clips below `Real/` and `OpenSource/MODE/GENERATOR/`; `Split/` has splits and prompts."""
    splits: dict[str, tuple[str, str]] = {}
    for table in sorted(folder.rglob("Split/*.jsonl")):
        for line in table.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            name = PurePosixPath(str(row["Video_id"])).stem
            splits[name] = table.stem, str(row.get("Video_Prompts") or "")
    for path in iter_videos(folder, folder):
        is_real = "Real" in path.parts[:-1]
        mode = next((part for part in path.parts if part in {"T2V", "I2V", "V2V"}), "")
        creator = path.parts[path.parts.index(mode) + 1] if mode else "unknown"
        split, prompt = splits.get(path.stem, ("", ""))
        yield _build_row(
            path, creator=creator, is_real=is_real, setting=mode, split=split, prompt=prompt
        )


def read_videophy_2(folder: Path) -> Iterator[Row]:
    """Yield the rows of `videophy2_test.csv`: clips at URLs, whose folder is the generator."""
    for row in _read_csv(folder / "videophy2_test.csv"):
        creator = PurePosixPath(urlsplit(row["video_url"]).path).parent.name
        yield {
            "file": row["video_url"],
            "creator": creator,
            "prompt": row["caption"],
            "split": "test",
            "score": row["pc"],
        }


def read_videofeedback2(folder: Path) -> Iterator[Row]:
    """Yield the rows of the test table with the score of physical consistency; clips are found by name."""
    places = _index_names(folder)
    for table in sorted(folder.glob("data_27k_test*.json")):
        for row in _read_json(table):
            creator = PurePosixPath(urlsplit(str(row.get("video_url", ""))).path).parent.name
            path = places.get(row["video_name"], PurePosixPath(row["video_name"]))
            yield {
                "file": str(path),
                "creator": creator,
                "prompt": row["prompt"],
                "split": "test",
                "score": row["phy_score"],
            }


ADAPTERS: Mapping[str, Callable[[Path], Iterator[Row]]] = {
    "aigvdbench": read_aigvdbench,
    "deepfake-eval-2024": read_deepfake_eval_2024,
    "genbuster-bench": read_genbuster_bench,
    "loki": read_loki,
    "videofeedback2": read_videofeedback2,
    "video-reality-test": read_video_reality_test,
    "videophy-2": read_videophy_2,
    "vif-bench": read_vif_bench,
}


def iter_videos(below: Path, folder: Path) -> Iterator[PurePosixPath]:
    """Yield the paths of the videos below `below`, relative to `folder` and sorted; links are skipped."""
    for path in sorted(below.rglob("*")):
        relative = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in relative.parts)
        if path.suffix.lower() in _SUFFIXES and not is_hidden and not path.is_symlink():
            yield PurePosixPath(relative)


def _build_row(path: PurePosixPath, *, is_real: bool, creator: str = "", **cells: str) -> Row:
    columns = dict.fromkeys(("setting", "split", "group", "difficulty", "prompt"), "")
    label = {"label": "real", "creator": ""} if is_real else {"label": "fake", "creator": creator}
    return {"file": str(path), **label, **columns, **cells}


def _index_names(folder: Path) -> dict[str, PurePosixPath]:
    """Return the paths of videos by file name; a name that is used twice is left out."""
    paths = defaultdict(list)
    for path in iter_videos(folder, folder):
        paths[path.name].append(path)
    return {name: found[0] for name, found in paths.items() if len(found) == 1}


def _read_csv(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


def _read_json(path: Path) -> list[Any]:
    rows = parse_json(read_limited_bytes(path, most=_TABLE_BYTES, remedy=_DOWNLOAD_AGAIN))
    if not isinstance(rows, list):
        raise UnreadableSourceError(str(path), "not a list of rows", _DOWNLOAD_AGAIN)
    return rows
