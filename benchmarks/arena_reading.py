"""What reading the answers of a season takes: time and memory for each stored answer.

    python benchmarks/arena_reading.py
    python benchmarks/arena_reading.py --reviewers 50 --clips 51000 --folder season --json

Makes a season that nobody played: a set of clips that lie nowhere, and a run of each reviewer, written by the
tables' own writer. A second process then reads the lineup and every condition, as `unreel arena rank` does before it
ranks. Prints answers, seconds, seconds of work, microseconds of work for each answer and the most memory that the
reading process held. With `--folder` the season is kept, and one that lies there is read as it is.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from peak_memory import peak_mib

from facts import FACTS as DRAWN
from unreel.arena.answers.season_answers import read_season_answers, read_season_clips
from unreel.arena.run.question_plan import SeasonReviewer
from unreel.arena.season.folder import SET, EnteredReviewer, SeasonEntrants, SeasonFolder
from unreel.arena.season.scenes import CONTROLS, METADATA, open_season_clip_facts_table
from unreel.benchmarks.questions import PlannedQuestion
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import EnvironmentSettings
from unreel.engine.clip_facts import FACTS, StoredClipFacts
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row
from unreel.engine.storage_access import ClipAccessSettings, compute_file_name_key
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.run_job import write_run_recipe

_CREATORS = 50
_ROWS = 10_000
_TEXTS = ("<think>The hands keep their shape.</think><answer>0</answer>", "<answer>1</answer>")


def make_season(root: Path, *, reviewers: int, clips: int, conditions: int) -> None:
    """A season of so many answers for each condition."""
    folder, files = SeasonFolder(StorageLocation(str(root))), OutputDirectory(root)
    makers = ["", *(f"creator-{number:02}" for number in range(_CREATORS))]
    lines, found = [], []
    for number in range(clips):
        creator, file = makers[number % len(makers)], f"media/{number}.mp4"
        label = "generated" if creator else "real"
        told = {"file_name": file, "name": f"clip-{number}", "label": label, "creator": creator}
        lines.append(json.dumps(told | {"group": f"scene-{number // len(makers)}"}) + "\n")
        own = hashlib.sha256(str(number).encode()).hexdigest()
        facts = FACTS.dump_json(DRAWN).decode()
        found.append(
            {
                "key": compute_file_name_key(file),
                "name": f"clip-{number}",
                "clip": own,
                "facts": facts,
            }
        )
    files.write(f"{SET}/{METADATA}", "".join(lines).encode())
    folder.write_json(f"{SET}/{CONTROLS}", {})
    _store(open_season_clip_facts_table(folder), found)
    sections = [{"sampling": f"uniform-{8 + number}"} for number in range(conditions)]
    titles = tuple(section["sampling"] for section in sections)
    judges = []
    for number in range(reviewers):
        given = {
            "benchmark": str(folder.set),
            "protocol": "reality",
            "reviewer": {"model": "always-real"},
            "condition": sections,
        }
        recipe, name = validate_eval_recipe(given), f"reviewer-{number:02}"
        heard = [str(section.as_condition()) for section in recipe.condition]
        told = dict(zip(titles, heard, strict=True))
        entered = EnteredReviewer(title=name, name=name, folder=name, conditions=told)
        _answer(SeasonReviewer(entered=entered, recipe=recipe), folder, found)
        judges.append(entered)
    folder.keep_entrants(
        SeasonEntrants(season="read", conditions=titles, reviewers=tuple(judges), digest="none")
    )


def _answer(reviewer: SeasonReviewer, folder: SeasonFolder, clips: list[Row]) -> None:
    """The run of a reviewer that has answered everything."""
    access = ClipAccessSettings(settings=EnvironmentSettings(), trusted=True)
    run = reviewer.run(SimpleNamespace(folder=folder, access=access))
    write_run_recipe(run, reviewer.entered.name, None)
    _store(run.clips, clips)
    _store(
        run.answers,
        list(_answers(reviewer, run.plan(StoredClipFacts(open_season_clip_facts_table(folder))))),
    )


def _answers(reviewer: SeasonReviewer, plan: Iterator[object]) -> Iterator[Row]:
    for number, planned in enumerate(each for each in plan if isinstance(each, PlannedQuestion)):
        question = planned.question
        yield {
            "key": question.key(reviewer.entered.name),
            "attempt": 1,
            "reviewer": reviewer.entered.name,
            "clip": planned.clips[0].id,
            "protocol": question.instrument.protocol,
            "protocol_version": question.instrument.version,
            "condition": str(question.condition),
            "text": _TEXTS[number % len(_TEXTS)],
        }


def _store(table: LanceTable, rows: list[Row]) -> None:
    with build_writer_lock(table.place) as lock:
        writer = TableWriter(table, lock=lock, observe=lambda _step, _rows: None)
        for start in range(0, len(rows), _ROWS):
            writer.append(rows[start : start + _ROWS])


def measure(root: Path) -> dict[str, float]:
    """Read all of a season in this process."""
    folder = SeasonFolder(StorageLocation(str(root)))
    started, worked = time.perf_counter(), time.process_time()
    entrants, lineup = folder.require_played(), read_season_clips(folder)
    lineup_s = time.process_time() - worked
    plays = [read_season_answers(folder, title, clips=lineup) for title in entrants.conditions]
    cpu_s, answers = time.process_time() - worked, sum(len(play.answer_codes) for play in plays)
    return {
        "reviewers": len(entrants.reviewers),
        "clips": len(lineup.names),
        "conditions": len(plays),
        "answers": answers,
        "seconds": round(time.perf_counter() - started, 2),
        "cpu_s": round(cpu_s, 2),
        "lineup_cpu_s": round(lineup_s, 2),
        "cpu_us_per_answer": round(1e6 * (cpu_s - lineup_s) / max(1, answers), 1),
        "peak_mib": peak_mib(),
    }


def _measure_alone(root: Path) -> dict[str, float]:
    typed = [sys.executable, __file__, "--alone", "--folder", str(root)]
    done = subprocess.run(typed, check=True, capture_output=True, text=True)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reviewers", type=int, default=10)
    parser.add_argument("--clips", type=int, default=5000)
    parser.add_argument("--conditions", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="kept; read as it is where a season lies there")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.alone:
        print(json.dumps(measure(asked.folder)))
        return
    sizes = {name: getattr(asked, name) for name in ("reviewers", "clips", "conditions")}
    with tempfile.TemporaryDirectory(prefix="unreel-") as made:
        root = (asked.folder or Path(made)).absolute()
        if not (root / "entrants.json").is_file():
            make_season(root, **sizes)
        told = _measure_alone(root)
    line = (
        "{reviewers} reviewers, {clips:,} clips, {conditions} conditions: {answers:,} answers in {seconds} s "
        "({cpu_s} s of work, {lineup_cpu_s} s of it for the lineup), {cpu_us_per_answer} us an answer, {peak_mib} MiB"
    )
    print(json.dumps(told) if asked.json else line.format(**told))


if __name__ == "__main__":
    main()
