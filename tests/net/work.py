"""Commands of the net, by group, with the files that they read.

Each group starts in a new folder with the eight drawn clips. `MODEL` is the model on loopback.
"""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from net.commands import set_model, unpack
from net.stored_work import PUSHES, READS, RECIPE, SEASON, STATE, TRAINING, WHERE, push_words
from reward_logs import fall, make_log

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "clips": """\
doctor
probe c0.mp4 c2.mp4 --trusted
probe missing.mp4 --trusted
frames c0.mp4 --trusted
frames c0.mp4 --sampling fps-2 --longest-side 64 --out frames --trusted
benchmarks
benchmarks list
benchmarks show deeptracereward
models list
models show skyra-rl
benchmarks check clips.csv
benchmarks check clips.csv --map label=group
benchmarks example deeptrace --out deeptrace
benchmarks check deeptrace
benchmarks example vif-cot --out vif-cot
benchmarks check vif-cot/vif_cot.json
benchmarks example activity-forensics --out activity
benchmarks check activity/test.txt --layout activity-forensics
benchmarks masks masks --trusted
review c2.mp4 --model MODEL --trusted
review c2.mp4 --model MODEL --protocol reality --trusted
review c2.mp4 --model coin --model always-real --out evidence --trusted
review c2.mp4 --trusted
review missing.mp4 --model coin --trusted
review --sample
curate inject c0.mp4 --category sudden-blurring --trusted
curate inject c0.mp4 --category object-distortion --out planted.mp4 --trusted
""",
    "runs": """\
benchmarks example lav-df --out located
eval clips.csv --protocol reality --model MODEL --condition prompt=paper --condition prompt=detailed --out reality --trusted
eval clips.csv --protocol reality --model MODEL --condition prompt=paper --condition prompt=detailed --out reality --trusted
eval clips.csv --protocol realism --model MODEL --out realism --trusted
eval clips.csv --protocol preference --model MODEL --out preference --trusted
eval clips.csv --protocol trace --model MODEL --condition sampling=uniform-4 --out trace --trusted
eval located/metadata.json --protocol locate --model MODEL --out locate --trusted
eval clips.csv --protocol reality --model coin --model always-real --model motion --model metadata --out runs --trusted
eval clips.csv --protocol reality --model MODEL --limit 4 --nframe 2 --out shown --trusted
eval clips.csv --protocol reality --model MODEL --out dry --dry-run --trusted
eval clips.csv --protocol nothing --model coin
eval --recipe eval.toml --out by-recipe --trusted
score reality
score reality --parser strict
score reality --format latex
score reality --format csv
score realism
score preference
score trace
score trace --judge MODEL
score trace --judge MODEL
score locate
score answers.csv --benchmark clips.csv --protocol reality
score missing
eval clips.csv --protocol reality --model recorded --recorded answers.csv --out recorded --trusted
compare reality runs/coin-reality-clips
compare reality
compare reality realism
train compare reality runs/coin-reality-clips
report reality runs --out report
report trace --out traces
runs list
runs check reality
runs check missing
reward calibrate runs/motion-reality-clips --out calibration.json
export clips.csv --to lmms-eval --protocol reality --out lmms --trusted
export clips.csv --to vlmevalkit --protocol trace --box-space permille --out vlm --trusted
export reality --to jsonl --out rows.jsonl
export trace --to csv --out rows.csv
export reality --to parquet --out rows.parquet
""",
    "curate": """\
curate init . --out new.toml
curate check curate.toml
curate settings
curate run curate.toml --out curation --accept-leak --trusted
curate run curate.toml --out curation --accept-leak --trusted
curate step scan curate.toml --out stepped --trusted
curate audit clips.csv --no-texts --trusted
curate diff curation/benchmark curation/benchmark
curate sheet curation --trusted
curate publish curation --accept-leak --accept-no-licence
runs check curation
eval curation/benchmark --protocol trace --model MODEL --condition sampling=uniform-8 --out trace --trusted
score trace --judge MODEL
report trace --judge MODEL --out report
train recipes
train examples tiny.toml --data curation/benchmark --n 2 --accept-leak --trusted
train export tiny.toml --data curation/benchmark --to llamafactory --out exported --accept-leak --trusted
""",
    "arena": """\
arena init clips.csv --out new.toml
arena plan season.toml
arena plan season.toml --pin
arena run season.toml --dry-run --trusted
arena run season.toml --trusted
arena run season.toml --trusted
arena rank season.toml --resamples 100
arena ablations season.toml
arena people season.toml --votes votes.csv
arena people season.toml --campaign votes --ledger ledger.db
arena site season.toml --media none --resamples 100
runs list seasons
report seasons/autumn/runs --out report
""",
    "campaign": """\
annotate links traces --state state
annotate polish traces --model MODEL
annotate polish scores --model MODEL
annotate polish scores --model MODEL
annotate review traces c0.mp4 --accept --by lead
annotate exclude votes cleo --why "in a hurry"
annotate quality votes
annotate include votes cleo --why "on time"
annotate confirm scores c0.mp4 --by lead
annotate publish scores --out rated
annotate publish votes --out people
annotate report traces --out page --state state
annotate up --program nowhere --state other
""",
    "services": """\
serve nowhere
reward client --out client.py
reward watch honest.jsonl
reward watch hacked.jsonl --out watched
desk verify nowhere
""",
}
CONSOLES = ("bring-your-own.md", "evaluate.md", "outside-reviewers.md", "first-ten-minutes.md")
"""Pages of `docs` whose console commands are recorded, without those that install something."""
EVAL_RECIPE = """\
benchmark = "clips.csv"
protocol = "realism"
limit = 2

[reviewer]
model = "MODEL"

[[condition]]
sampling = "uniform-4"
"""


def prepare(group: str, model: str) -> None:
    """Write the input files of a group into the present folder."""
    unpack(Path(), "campaign" if group in {"campaign", "arena"} else "clips")
    Path("curate.toml").write_text(RECIPE.format(model=model), encoding="utf-8")
    Path("season.toml").write_text(SEASON.format(model=model), encoding="utf-8")
    Path("tiny.toml").write_text(TRAINING, encoding="utf-8")
    Path("eval.toml").write_text(EVAL_RECIPE.replace("MODEL", model), encoding="utf-8")
    set_model(model)
    _write_table(
        "votes.csv",
        "name,voter,label",
        "c0.mp4,ann,real",
        "c2.mp4,ann,generated",
        "c2.mp4,ben,real",
    )
    _write_table("answers.csv", "file,text", "c0.mp4,<answer>1</answer>", "c2.mp4,well")
    if group == "services":
        for name, hacks in (("honest", ()), ("hacked", (fall,))):
            _write_table(f"{name}.jsonl", *map(json.dumps, make_log(0, *hacks)))
    if group == "clips":
        for name, clip in (("masks", "c0.mp4"), ("videos", "c0.mp4")):
            Path("masks", name).mkdir(parents=True)
            Path("masks", name, clip).write_bytes(Path(clip).read_bytes())


def _write_table(name: str, *lines: str) -> None:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def list_commands(group: str, model: str) -> Iterator[list[str]]:
    """Yield the words of each command of a group, in the order in which they run."""
    if group == "campaign":
        for campaign in PUSHES:
            yield [str(word) for word in push_words(campaign)]
            yield ["annotate", "pull", campaign, *STATE]
            for (command,) in READS[campaign]:
                yield ["annotate", command, campaign, *WHERE]
        yield shlex.split("annotate pairs clips.csv --plan strict --clips all --out other.csv")
    for line in COMMANDS[group].splitlines():
        words = shlex.split(line.replace("MODEL", model))
        yield [*words, *WHERE] if group == "campaign" else words


def read_consoles() -> dict[str, list[str]]:
    """Return the commands in the console blocks of each page of `CONSOLES`."""
    commands: dict[str, list[str]] = {}
    for page in CONSOLES:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        commands[page] = []
        for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            for line in block.splitlines():
                if line.startswith("$ "):
                    commands[page].append(line[2:])
                elif line.startswith("> "):
                    commands[page][-1] += "\n" + line[2:]
    return commands
