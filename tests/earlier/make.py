"""Make the stored work of a release, for later ones to continue.

    PYTHONPATH=tests python tests/earlier/make.py work|campaign|training FOLDER [LABEL_STUDIO]

FOLDER must not exist. `python` decides the release: run it with the environment of another checkout. `work` makes a
curation with its frozen benchmark, runs of all four protocols, rulings of a judge, and a season; `campaign`
two campaigns on a real Label Studio; `training` a training that was stopped (in the environment for training).
The clips are those of `stored.tar.gz`. FOLDER/golden gets the printed documents.
"""

import contextlib
import sys
from pathlib import Path

from earlier.commands import keep, read_json, unpack_clips, unpack_lessons
from earlier.model_server import serve_model

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
share = 0.5
categories = ["object-distortion", "sudden-blurring"]

[normalise]
width = 96
height = 72
rate = 12
crf = 36

[describe]
model = "{model}"

[audit]
texts = false

[freeze]
version = "1.0"
first_frames = true
labels = []
"""
SEASON = """\
name = "autumn"
benchmark = "clips.csv"
protocol = "reality"

[[creator]]
name = "Sora"
kind = "frozen"

[[creator]]
name = "Veo"
kind = "frozen"

[[creator]]
name = "recompressed"
kind = "degrade"
way = "recompressed"

[[condition]]
prompt = "paper"

[[condition]]
prompt = "detailed"

[[reviewer]]
model = "{model}"
title = "Served"
"""
RUNS = {
    "reality": ["clips.csv", "--condition", "prompt=paper", "--condition", "prompt=detailed"],
    "realism": ["clips.csv"],
    "preference": ["clips.csv"],
    "trace": ["curation/benchmark", "--condition", "sampling=uniform-8"],
}
CURATE = ("curate", "run", "curate.toml", "--out", "curation", "--accept-leak", "--trusted")
PLAY = ("arena", "run", "season.toml", "--trusted")
RANK = ("arena", "rank", "season.toml", "--resamples", 100)


def make_work() -> None:
    """Make a curation, four runs and a season."""
    with serve_model() as model:
        Path("curate.toml").write_text(RECIPE.format(model=model.name), encoding="utf-8")
        Path("season.toml").write_text(SEASON.format(model=model.name), encoding="utf-8")
        keep("curation", *CURATE)
        for protocol, (benchmark, *words) in RUNS.items():
            asked = ["eval", benchmark, "--protocol", protocol, "--model", model.name, "--trusted"]
            read_json(*asked, *words, "--out", f"runs/{protocol}")
            keep(protocol, "score", f"runs/{protocol}")
        keep("judged", "score", "runs/trace", "--judge", model.name)
        read_json("arena", "plan", "season.toml", "--pin")
        read_json(*PLAY)
        keep("season", *RANK)
        keep("ablations", "arena", "ablations", "season.toml")


def main(part: str, folder: Path, *more: str) -> None:
    """Make one part in `folder`."""
    folder.mkdir(parents=True)
    prepare = unpack_lessons if part == "training" else unpack_clips
    with contextlib.chdir(prepare(folder)):
        Path("golden").mkdir()
        if part == "work":
            make_work()
        elif part == "campaign":
            from earlier.make_campaign import make_campaign

            make_campaign(Path(more[0]))
        else:
            from earlier.make_training import make_training

            make_training()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
