"""Recipes and commands of the stored work, which commit 5462f705 made with the clips of `clips.tar.xz`.

`work` is a curation with its frozen benchmark, runs of all five protocols, rulings of a judge, and a season; `campaign` four
campaigns on a real Label Studio; `training` a training that was stopped, on the benchmark of `work`.
"""

import json
import sqlite3
from pathlib import Path

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
TRAINING = """\
name = "tiny"
max_tokens = 8

[model]
name = "base"
family = "qwen2.5-vl"
tune = "lora"
lora_rank = 1
precision = "fp32"
gradient_checkpointing = false

[[data]]
protocol = "trace"
condition = { sampling = "uniform-4", prompt = "fine-tuning" }

[holdout]
near_duplicates = false
share = 0.25

[optimise]
max_steps = 6
batch_size = 2
learning_rate = 1e-3
workers = 0

[watch]
every = 100
save_every = 2
clips = 2
"""
TRAIN = ("train", "run", "tiny.toml", "--data", "lessons", "--accept-leak", "--trusted")
PEOPLE = ("ada", "ben", "cleo")
BENCH = "few.csv"
WHERE = ("--ledger", "ledger.db")
STATE = ("--state", "state", *WHERE)
PUSHES = {
    "traces": ("--interface", "trace"),
    "pairs": ("--interface", "preference", "--pairs", "pairs.csv"),
    "votes": ("--interface", "reality", "--gold", 1),
    "scores": ("--interface", "realism"),
}
READS = {
    "traces": (("status",), ("consensus",)),
    "pairs": (("status",), ("consensus",), ("rank",)),
    "votes": (("status",), ("consensus",), ("quality",)),
    "scores": (("status",), ("consensus",)),
}
"""Commands that read each campaign from the ledger."""


def push_words(campaign: str) -> list[object]:
    """Return the words of the push of that campaign."""
    people = ",".join(f"{name}={name}@example.org" for name in PEOPLE)
    words = ["annotate", "push", BENCH, "--campaign", campaign, "--annotators", people]
    return [*words, *PUSHES[campaign], "--trusted", *STATE]


def set_address(address: str) -> None:
    """Let commands find Label Studio at `address`, and the benchmark in the present folder."""
    with sqlite3.connect("ledger.db") as ledger:
        ledger.execute("UPDATE ledger_campaigns SET benchmark = ?", (str(Path(BENCH).absolute()),))
    Path("state/studio.json").write_text(json.dumps({"address": address}), encoding="utf-8")
