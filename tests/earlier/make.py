"""Makes the stored work of this release, for later ones to go on with.

    PYTHONPATH=tests python tests/earlier/make.py FOLDER

FOLDER gets drawn clips, a curation of them with its frozen benchmark, runs of all four instruments, the
judge's rulings on one, and what the commands printed, all by the `unreel` on the path.
"""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

from earlier.model_server import serve_model
from synthesise import ClipRecipe, synthesise

RECIPE = """\
name = "small"
seed = 1
require_licence = false

[source]
path = "clips.csv"

[duplicates]
near = "keep"

[split]
shortest_s = 0.2

[crop]

[screen.screens.motion]

[watermark]
texts = false

[inject]
share = 1.0
categories = ["object-distortion", "sudden-blurring"]

[normalise]
width = 128
height = 96
rate = 12
crf = 30

[describe]
model = "{model}"

[audit]
texts = false

[freeze]
version = "1.0"
first_frames = true
labels = []
"""
RUNS = {
    "reality": ["clips.csv", "--condition", "prompt=paper", "--condition", "prompt=detailed"],
    "realism": ["clips.csv"],
    "preference": ["clips.csv"],
    "trace": ["curation/benchmark", "--condition", "sampling=uniform-8"],
}


def draw_clips(folder: Path) -> None:
    lines = ["file,label,generator,group,score"]
    for number in range(8):
        creator = ["", "", "Sora", "Veo"][number % 4]
        recipe = ClipRecipe(
            width=128, height=96, rate=Fraction(12), n_frames=14 + number, seed=number
        )
        (folder / f"c{number}.mp4").write_bytes(synthesise(recipe))
        label = "generated" if creator else "real"
        lines.append(f"c{number}.mp4,{label},{creator},g{number // 4}{number % 2},{number % 5 + 1}")
    (folder / "clips.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["unreel", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode == 2:
        sys.exit(f"unreel {' '.join(words)}: {done.stderr}")
    return done.stdout


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    draw_clips(folder)
    with serve_model() as model:
        (folder / "curate.toml").write_text(RECIPE.format(model=model.name), encoding="utf-8")
        run(folder, "curate", "run", "curate.toml", "--out", "curation", "--accept-leak")
        for protocol, (benchmark, *words) in RUNS.items():
            asked = ["eval", benchmark, "--protocol", protocol, "--model", model.name]
            run(folder, *asked, *words, "--out", f"runs/{protocol}")
            printed = run(folder, "score", f"runs/{protocol}", "--json")
            (folder / f"{protocol}.json").write_text(printed, encoding="utf-8")
        printed = run(folder, "score", "runs/trace", "--judge", model.name, "--json")
        (folder / "judged.json").write_text(printed, encoding="utf-8")
        (folder / "asked.json").write_text(json.dumps(len(model.asked)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
