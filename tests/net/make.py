"""Make the stored work of a release, for later ones to resume.

    python tests/net/make.py work|campaign|training FOLDER [LABEL_STUDIO]

FOLDER must not exist. `python` decides the release: run it with the environment of another checkout. `work` makes a
curation with its frozen benchmark, runs of all five protocols, rulings of a judge, and a season; `campaign`
three campaigns on a real Label Studio; `training` a training that was stopped (in the environment for training), on the
benchmark of `work`. The clips are those of `clips.tar.xz`. FOLDER/golden gets the printed documents. Pack it with
`tar cJf PART.tar.xz -C FOLDER --exclude='c?.mp4' --exclude=clips.csv .`
"""

import contextlib
import shutil
import sys
from pathlib import Path

if __name__ == "__main__":  # the folder of the script has another `net`
    sys.path[0] = str(Path(__file__).parents[1])

from net.commands import call, keep, read_json, unpack
from net.model_server import serve_model

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
    "locate": ["located/metadata.json"],
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
        call("benchmarks", "example", "lav-df", "--out", "located")
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
    with contextlib.chdir(unpack(folder, "work" if part == "training" else "clips")):
        if part == "training":
            Path("curation/benchmark").rename("lessons")
            for rest in ("golden", "curation", "runs", "seasons"):
                shutil.rmtree(rest)
        Path("golden").mkdir()
        if part == "work":
            make_work()
        elif part == "campaign":
            from net.make_campaign import make_campaign

            make_campaign(Path(more[0]))
        else:
            from net.make_training import make_training

            make_training()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
