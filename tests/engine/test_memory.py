"""The driver's memory does not grow with the number of questions."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra `eval`")

from synthesise import ClipRecipe, synthesise
from unreel.core.content_ids import digest
from unreel.engine.clip_facts import CLIPS, FACTS
from unreel.engine.location import StorageLocation
from unreel.engine.run import run_pending_questions
from unreel.engine.stage import Row, Stage, WorkerResources
from unreel.engine.storage_access import compute_file_name_key
from unreel.engine.table import LanceTable
from unreel.media.probe import probe_clip

MOST_MB = 50
JOINING_MB = 200
"""From some ten thousand rows on, full commits and joins of fragments are part of a run; then it is flat."""
# getrusage would count what the process was before it became the program, a worker of the tests.
PEAK = "int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) // 1024"

ENGINE = f"""
import sys
from unreel.core.content_ids import digest
from unreel.asking.answer_table import ANSWERS
from unreel.engine.location import StorageLocation
from unreel.engine.run import run_pending_questions
from unreel.engine.stage import WorkerResources, Stage
from unreel.engine.table import LanceTable

class Recorded(Stage):
    resources = WorkerResources(cpus=0, in_flight=32)
    async def __call__(self, row):
        return row | {{"text": "real " * 100}}

rows = ({{"key": digest(str(number)), "clip": digest("c", str(number))}} for number in range(int(sys.argv[2])))
summary = run_pending_questions(rows, [Recorded()], table=LanceTable(StorageLocation(sys.argv[1]), ANSWERS))
print(summary.already, summary.done, {PEAK})
"""

EVAL = f"""
import sys
from pathlib import Path
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import ClipAccessSettings
from unreel.engine.location import StorageLocation
from unreel.evaluation.run_job import EvalRun, evaluate
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.scoring import score_run

folder = Path(sys.argv[1])
recipe = validate_eval_recipe({{
    "benchmark": str(folder / "manifest.csv"), "protocol": "reality", "model": "recorded",
    "recorded": str(folder / "answers.jsonl"), "max_connections": 32,
}})
place = StorageLocation(str(folder / "run"))
run = EvalRun(place=place, recipe=recipe, access=ClipAccessSettings(settings=read_environment_settings()), ledgers=folder)
if sys.argv[3] == "score":
    (score,) = score_run(run)
    print(0, score.scorecard.n_answered, {PEAK})
else:
    outcome = evaluate(run)
    assert outcome.clips.already == int(sys.argv[2]), outcome
    print(outcome.answers.already, outcome.answers.done, {PEAK})
"""


def peak_mb(script: str, folder: Path, n_rows: int, *, how: str = "", already: int = 0) -> int:
    command = [sys.executable, "-c", script, str(folder), str(n_rows), how]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert (int(out[0]), int(out[1])) == (already, n_rows - already)
    return int(out[2])


class _Surveyed(Stage):
    """Says of every file what was found in one: a hundred thousand clips need not lie here."""

    resources = WorkerResources(cpus=0, in_flight=32)

    def __init__(self, facts: str) -> None:
        self._facts = facts

    async def __call__(self, row: Row) -> Row:
        return row | {"clip": digest("clip", row["name"]), "facts": self._facts}


def prepare(folder: Path, n_clips: int) -> Path:
    """A benchmark whose survey is done, and recorded answers of half a kilobyte each."""
    folder.mkdir()
    (folder / "one.mp4").write_bytes(synthesise(ClipRecipe(width=64, height=64, n_frames=8)))
    names = [f"c{number:06d}.mp4" for number in range(n_clips)]
    with (
        (folder / "manifest.csv").open("w") as manifest,
        (folder / "answers.jsonl").open("w") as answers,
    ):
        manifest.write("file,label,generator,group\n")
        for number, name in enumerate(names):
            creator = ("", "", "Sora", "Veo")[number % 4]
            label = "generated" if creator else "real"
            manifest.write(f"{name},{label},{creator},g{number}\n")
            text = f"<think>{digest(name) * 8}</think><answer>{number % 3 % 2}</answer>"
            answers.write(json.dumps({"clip": name, "text": text}) + "\n")
    with (folder / "one.mp4").open("rb") as file:
        facts = FACTS.dump_json(probe_clip(file)).decode()
    rows = (
        {
            "key": compute_file_name_key(name),
            "name": name,
            "location": str(folder / name),
            "mark": "",
        }
        for name in names
    )
    run_pending_questions(
        rows,
        [_Surveyed(facts)],
        table=LanceTable(StorageLocation(str(folder / "run" / "clips.lance")), CLIPS),
    )
    return folder


def test_ten_times_the_rows_take_no_more_memory(tmp_path: Path) -> None:
    small = peak_mb(ENGINE, tmp_path / "small", 1_000)
    assert peak_mb(ENGINE, tmp_path / "large", 10_000) - small <= MOST_MB


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_questions_of_an_eval_take_no_more_memory(tmp_path: Path) -> None:
    small = peak_mb(EVAL, prepare(tmp_path / "small", 1_000), 1_000)
    large = prepare(tmp_path / "large", 100_000)
    peaks = {
        "ask": peak_mb(EVAL, large, 100_000),
        "resume": peak_mb(EVAL, large, 100_000, already=100_000),
        "score": peak_mb(EVAL, large, 100_000, how="score"),
    }
    sys.stderr.write(f"peak MB: 1,000 questions {small}; 100,000 {peaks}\n")
    assert {how: peak - small for how, peak in peaks.items() if peak - small > JOINING_MB} == {}
