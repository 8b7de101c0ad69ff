"""Copies and parts that `unreel seen` finds among the clips of a folder, and the time of a search among many.

    python benchmarks/seen_search.py FOLDER [--clips 100000]

Each clip is indexed. Copies of it (half the size at CRF 34, CRF 30, 15 frames a second) are searched; a match with
another clip is a false one. The second part fills an index with random fingerprints of 10 s each.
"""

import argparse
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np

from unreel.benchmarks.folder_layout import walk_videos
from unreel.core.clip import ClipId
from unreel.core.failure import Failure
from unreel.core.settings import read_environment_settings
from unreel.evaluation.review import probe_clip_file
from unreel.media.access import open_media_reader
from unreel.media.perturb import build_clip_format
from unreel.media.seen_index import SeenIndex, hash_clip, parse_frames

WAYS = {
    "half size, CRF 34": {"scale": Fraction(1, 2), "crf": 34},
    "CRF 30": {"crf": 30},
    "15 frames a second, CRF 30": {"rate": Fraction(15), "crf": 30},
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clips", type=int, default=100_000)
    options = parser.parse_args()
    now = datetime.now(UTC)
    with (
        tempfile.TemporaryDirectory() as temporary,
        open_media_reader(read_environment_settings(), trusted=True) as reader,
    ):
        copy = Path(temporary) / "copy.mp4"
        index = SeenIndex(Path(temporary) / "seen.sqlite")
        clips = {}
        for video in walk_videos(options.folder):
            clip = probe_clip_file(options.folder / str(video), reader)
            frames = None if isinstance(clip, Failure) else hash_clip(clip.location, reader)
            if frames is None or isinstance(frames, Failure):
                print(f"{video}: {clip if frames is None else frames}")
                continue
            clips[clip.id] = clip
            index.add(clip.id, frames, place=str(video), source="", duration_us=1, added_at=now)
        for name, way in WAYS.items():
            found, false = Counter(), []
            for clip in clips.values():
                copy.write_bytes(
                    reader.normalise(clip.location, build_clip_format(clip.facts, **way))
                )
                matches = index.find(copy, ClipId(""), reader)
                ids = [match.clip.id for match in matches]
                found[clip.id in ids] += 1
                false += [
                    (Path(clip.location).name, m.clip.place, m.n_frames, m.bits)
                    for m in matches
                    if m.clip.id != clip.id
                ]
            print(
                f"{name}: {found[True]} of {len(clips)} found; {len(false)} matches with another clip"
            )
            for row in false:
                print("   ", *row)
        random = np.random.default_rng(0)
        for number in range(options.clips):
            frames = np.zeros(20, parse_frames(b"").dtype)
            frames["at_us"] = np.arange(20) * 500_000
            frames["words"] = random.integers(0, 1 << 63, (20, 4), np.uint64) * 2 + random.integers(
                0, 2, (20, 4), np.uint64
            )
            index.add(
                ClipId(f"{number:064x}"),
                frames,
                place=f"{number}",
                source="",
                duration_us=10**7,
                added_at=now,
            )
        for attempt in ("first, with reading the index", "second"):
            start_s = time.monotonic()
            index.find(copy, ClipId(""), reader)
            print(f"search among {len(index)} clips, {attempt}: {time.monotonic() - start_s:.2f} s")


if __name__ == "__main__":
    main()
