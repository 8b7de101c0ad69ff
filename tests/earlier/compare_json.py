"""Compare what two releases print with `--json`, command by command, on the same files.

    PYTHONPATH=tests python tests/earlier/compare_json.py BEFORE_PYTHON AFTER_PYTHON [COMMAND...]

Each release runs the commands of `WORK` and `CAMPAIGN` in one process, in a new copy of the stored work of c84a833, at the same
path and with the same model. Times and version numbers are left out. Prints each difference, and each command that
has `--json` and is not in the list; ends with status 1 if something differs. COMMAND limits it to the commands that begin
so, for example "arena rank".
"""

import contextlib
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from earlier.commands import (
    HERE,
    call,
    differences,
    set_model,
    unpack,
    unpack_clips,
    unpack_lessons,
)
from earlier.make_campaign import PUSHES, READS, STATE, WHERE, push_words, set_address
from earlier.make_training import TRAIN
from earlier.model_server import serve_model
from earlier.studio_snapshot import StudioSnapshot, serve_snapshot

WORK = """\
doctor
probe c0.mp4 c2.mp4 --trusted
frames c0.mp4 --trusted
benchmarks
benchmarks check clips.csv
review c2.mp4 --model MODEL --trusted
review c2.mp4 --model coin --out evidence --trusted
review --sample
eval clips.csv --protocol reality --model MODEL --out fresh --trusted
eval clips.csv --protocol reality --model MODEL --out fresh --trusted
eval clips.csv --protocol reality --model coin --out coin --trusted
eval clips.csv --protocol trace --model MODEL --out dry --dry-run --trusted
eval curation/benchmark --protocol trace --model MODEL --condition sampling=uniform-8 --out runs/trace --trusted
score runs/reality
score runs/realism
score runs/preference
score runs/trace
score runs/trace --judge MODEL
compare fresh coin
compare runs/reality
report runs --out report
runs list
runs check runs/trace
runs check curation
runs repair runs/trace
export clips.csv --to lmms-eval --protocol reality --out kit --trusted
export runs/trace --to jsonl --out rows.jsonl
curate init . --out new.toml
curate check curate.toml
curate settings
curate run curate.toml --out curation --accept-leak --trusted
curate step scan curate.toml --out stepped --trusted
curate audit clips.csv --no-texts --trusted
curate diff curation/benchmark curation/benchmark
curate inject c0.mp4 --category sudden-blurring --trusted
curate sheet curation --trusted
curate publish curation --accept-leak --accept-no-licence
published show
published show reality_creators
published check --quiet
published make reality_think tiny=golden/reality.json
arena plan season.toml
arena run season.toml --trusted
arena rank season.toml --resamples 100
arena ablations season.toml
arena people season.toml --votes votes.csv
arena submit season.toml entry.toml --trusted
arena log season.toml
arena withdraw season.toml Twice
arena watch season.toml --clips --trusted
arena site season.toml --media none --resamples 100
arena published --quiet
train recipes
train plan dtr-qwen2.5-vl-7b-no-both --gpu a100
train plan tiny.toml --data lessons --trusted
train examples tiny.toml --data lessons --n 2 --accept-leak --trusted
train export tiny.toml --data lessons --to llamafactory --out exported --accept-leak --trusted
train compare fresh coin
annotate pairs clips.csv --plan strict --clips all --out other.csv
annotate convert marked.json --to cvat --out cvat --rate 12 --size 128x96 --frames 14
serve nowhere
"""
CAMPAIGN = """\
annotate links traces --state state
annotate polish traces --model MODEL
annotate review traces c0.mp4 --accept --by lead
annotate exclude votes cleo --why "in a hurry"
annotate quality votes
annotate include votes cleo --why "on time"
annotate confirm traces c0.mp4 --by lead
annotate publish votes --out people
annotate report traces --out page --state state
annotate up --program nowhere --state other
arena people season.toml --campaign votes
"""
ENTRY = """\
team = "Blue"
licence = "CC BY 4.0"
statement = "Made for tests."

[reviewer]
model = "always-generated"
title = "Twice"
"""


def prepare() -> None:
    """Write the input files that the stored work lacks."""
    Path("entry.toml").write_text(ENTRY, encoding="utf-8")
    tasks = json.loads(Path("snapshot.json").read_text(encoding="utf-8"))["tasks"]
    Path("marked.json").write_text(json.dumps(next(iter(tasks.values()))), encoding="utf-8")
    votes = ["name,voter,label", "c0,ann,real", "c2,ann,generated", "c2,ben,real"]
    Path("votes.csv").write_text("\n".join(votes) + "\n", encoding="utf-8")


def list_commands(model: str) -> Iterator[list[str]]:
    """Return the words of each command, in the order in which they run."""
    for line in WORK.splitlines():
        yield shlex.split(line.replace("MODEL", model))
    for campaign in PUSHES:
        yield [str(word) for word in push_words(campaign)]
        yield ["annotate", "pull", campaign, *STATE]
        for (command,) in READS[campaign]:
            yield ["annotate", command, campaign, *WHERE]
    for line in CAMPAIGN.splitlines():
        yield [*shlex.split(line.replace("MODEL", model)), *WHERE]
    with contextlib.suppress(ImportError):
        import torch  # noqa: F401  only the environment for training has it

        yield [*map(str, TRAIN), "--out", "killed"]
        yield ["train", "card", "killed/model"]


def print_all(model: str, only: tuple[str, ...]) -> None:
    """Run the commands in this release; print their documents and the commands that have `--json`."""
    from unreel.cli.main import unreel

    documents: dict[str, Any] = {}
    for words in list_commands(model):
        name = shlex.join(words)
        if not name.startswith(only):
            continue
        done = call(*words, "--json")
        name += " (again)" if name in documents else ""
        problem = done.stderr.splitlines()[-1:] if done.exit_code == 2 else []
        try:
            document = json.loads(done.stdout)
        except ValueError:
            document = done.stdout
        documents[name] = {"status": done.exit_code, "document": document}
        sys.stderr.write(f"{done.exit_code} {name} {problem} {done.exception or ''}\n")
    json.dump({"documents": documents, "commands": sorted(_named(unreel, ()))}, sys.stdout)


def _named(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    context = click.Context(command)
    if any("--json" in option.opts for option in command.params) and path:
        yield " ".join(path)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _named(found, (*path, name))


def run_release(python: str, model: str, studio: str, folder: Path, only: tuple[str, ...]) -> Any:
    """Run the commands with `python` in a new copy of the stored work."""
    shutil.rmtree(folder, ignore_errors=True)
    unpack_lessons(folder)
    root = unpack_clips(folder)
    for part in ("work", "campaign", "training"):
        unpack(folder, f"c84a833/{part}.tar.xz")
    with contextlib.chdir(root):
        set_model(model)
        set_address(studio)
        prepare()
    program = f"import sys; sys.path.insert(0, {str(HERE.parent)!r})\n"
    program += (
        "from earlier.compare_json import print_all; print_all(sys.argv[1], tuple(sys.argv[2:]))"
    )
    words = [python, "-c", program, model, *only]
    done = subprocess.run(words, cwd=root, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def main(before: str, after: str, *only: str) -> int:
    """Compare the two releases; return the exit status."""
    folder = Path(tempfile.gettempdir(), f"unreel-compare-{'-'.join(only)[:20].replace(' ', '-')}")
    only = only or ("",)
    unpack(folder, "c84a833/campaign.tar.xz")
    contents = json.loads((folder / "earlier/snapshot.json").read_text(encoding="utf-8"))
    with serve_model() as model, serve_snapshot(StudioSnapshot(**contents)) as studio:
        found = [
            run_release(python, model.name, studio.address, folder, only)
            for python in (before, after)
        ]
    old, new = (release["documents"] for release in found)
    lines = [
        f"unreel {name}{line}"
        for name in old
        for line in differences(old[name], new.get(name), " ")
    ]
    run = {" ".join(shlex.split(name)[:2]) for name in old} | {shlex.split(n)[0] for n in old}
    lines += [f"not compared: {name}" for name in found[0]["commands"] if name not in run]
    lines += [f"gone: {name}" for name in found[0]["commands"] if name not in found[1]["commands"]]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
