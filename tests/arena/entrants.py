"""A season that can be entered: a benchmark of tiny clips that do not look alike, and folders of clips."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from footage import film, write_clip
from unreel.arena.season.folder import Season, read_season
from unreel.arena.season.scenes import open_season_benchmark

N_SCENES = 4


@cache
def clip(
    seed: int, *, crf: int = 23, n_frames: int = 16, width: int = 192, height: int = 128
) -> bytes:
    """A short film; other seeds look different."""
    return write_clip(film(seed, n_frames=n_frames, width=width, height=height), crf=crf)


def write_real(root: Path, *, n_scenes: int = N_SCENES) -> Path:
    """A real clip of each scene."""
    (root / "clips").mkdir(parents=True)
    lines = []
    for number in range(n_scenes):
        file = f"clips/real-{number}.mp4"
        (root / file).write_bytes(clip(number))
        line = {"file_name": file, "name": f"real-{number}", "label": "real"}
        lines.append(line | {"group": f"scene-{number}", "prompt": f"shapes {number}"})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (root / "metadata.jsonl").write_text(text, encoding="utf-8")
    return root


def write_made(root: Path, *, seed: int = 100, n_scenes: int = N_SCENES, **given: Any) -> Path:
    """What somebody made: a clip of each scene, named after it, and a licence."""
    root.mkdir(parents=True)
    (root / "LICENSE").write_text("CC BY 4.0\n")
    for number in range(n_scenes):
        (root / f"scene-{number}.mp4").write_bytes(clip(seed + number, **given))
    return root


def write_season(root: Path, *, more: str = "", n_scenes: int = N_SCENES) -> Season:
    """A season over such a benchmark, with one creator of its own."""
    write_real(root / "bench", n_scenes=n_scenes)
    write_made(root / "house", seed=500, n_scenes=n_scenes)
    own = '[[creator]]\nname = "House"\nkind = "folder"\nfolder = "house"\n'
    head = 'name = "spring"\nbenchmark = "bench"\n'
    file = root / "season.toml"
    file.write_text(f"{head}{own}{more}", encoding="utf-8")
    digest = open_season_benchmark(read_season(file)).digest
    file.write_text(f'{head}digest = "{digest}"\n{own}{more}', encoding="utf-8")
    return read_season(file)
