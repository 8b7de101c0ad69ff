"""Several raylets on this machine: a stranger is refused, all nodes work, a lost one costs a few rows twice.

The eval and the curation that lose a node are slow.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pace import slowness
from raylets import Raylets, raylets
from synthesise import ClipRecipe, synthesise
from unreel.asking.answer_table import ANSWERS
from unreel.core.settings import override_environment
from unreel.engine.location import StorageLocation
from unreel.engine.table import LanceTable

pytest.importorskip("ray", reason="needs the extra `ray`")

CHAOS = Path(__file__).parents[1] / "chaos"
UNREEL = [sys.executable, "-c", "from unreel.cli.main import main; main()"]
# How busy this machine is must not decide which clips can be read.
PATIENT = {"UNREEL_MEDIA_SECONDS": "600"}
WAIT_S = 60.0

MEETING = """
import json, sys
from pathlib import Path
from unreel.engine.location import StorageLocation
from unreel.engine.run import run_pending_questions
from unreel.engine.stage import WorkerResources, Stage
from unreel.engine.table_questions import TableQuestionSource
from unreel.engine.table import LanceTable
from unreel.asking.answer_table import ANSWERS

folder, wait_s = Path(sys.argv[1]), float(sys.argv[2])

class Meet(Stage):
    # Whoever comes first waits until a worker of the other node is there as well.
    resources = WorkerResources(cpus=1, in_flight=1)
    def __call__(self, row):
        import ray, time
        (folder / ray.get_runtime_context().get_node_id()).touch()
        until_s = time.monotonic() + wait_s
        while len(list(folder.iterdir())) < 2 and time.monotonic() < until_s:
            time.sleep(0.05)
        return row | {"text": row["reviewer"] + row["key"]}

class Keep(Stage):
    def __call__(self, row):
        return row

def ask(row):
    return {"reviewer": row["reviewer"] + " again "}

place = StorageLocation(sys.argv[3])
source, table = LanceTable(place / "source.lance", ANSWERS), LanceTable(place / "answers.lance", ANSWERS)
run_pending_questions([{"key": str(n), "reviewer": "r"} for n in range(40)], [Keep()], table=source)
summary = run_pending_questions(TableQuestionSource(source, ask), [Meet()], table=table, engine="ray")
print(json.dumps([summary.done, summary.failed, len(list(folder.iterdir()))]))
"""
JOIN = """
from unreel.engine.private_ray import connect_to_ray
with connect_to_ray():
    print("joined")
"""


@pytest.fixture(scope="module")
def pair() -> Iterator[Raylets]:
    """Two nodes of two logical processors each."""
    with raylets(2) as cluster:
        yield cluster


def follow(command: Sequence[str], **words: str) -> subprocess.CompletedProcess[str]:
    with override_environment(PATIENT | words):
        return subprocess.run(list(command), check=False, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_uses_every_node_and_its_workers_read_the_source_themselves(pair, tmp_path) -> None:
    nodes, tables = tmp_path / "nodes", tmp_path / "tables"
    nodes.mkdir()
    arguments = [str(nodes), str(WAIT_S * slowness()), str(tables)]
    ran = follow([sys.executable, "-c", MEETING, *arguments], **pair.environment)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert json.loads(ran.stdout.splitlines()[-1]) == [40, 0, 2]
    table = LanceTable(StorageLocation(str(tables / "answers.lance")), ANSWERS)
    assert {row["text"] for row in table.rows()} == {f"r again {n}" for n in range(40)}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("token", ["", "0" * 64])
def test_a_driver_without_the_token_is_told_which_variables_to_set(pair, token, tmp_path) -> None:
    # Ray looks for a token of its own below HOME, and knocks twenty times by default.
    words = {"RAY_AUTH_TOKEN": token, "HOME": str(tmp_path), "RAY_NUM_REDIS_GET_RETRIES": "1"}
    ran = follow([sys.executable, "-c", JOIN], **{**pair.environment, **words})
    assert ran.returncode != 0
    last = ran.stderr.splitlines()[-1]
    assert "RAY_ADDRESS" in last
    assert "RAY_AUTH_MODE=token" in last
    assert pair.environment["RAY_AUTH_TOKEN"] not in ran.stderr


def test_a_door_for_drivers_outside_is_refused_with_what_to_do() -> None:
    ran = follow([sys.executable, "-c", JOIN], RAY_ADDRESS="ray://127.0.0.1:10001")
    assert ran.returncode != 0
    assert "Run on a node of the cluster" in ran.stderr.splitlines()[-1]


@contextmanager
def started(command: Sequence[str], **words: str) -> Iterator[subprocess.Popen[str]]:
    with override_environment(PATIENT | words):
        process = subprocess.Popen(
            list(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    with process:
        try:
            yield process
        finally:
            process.kill()


def end(process: subprocess.Popen[str]) -> None:
    said, errors = process.communicate()
    assert process.returncode == 0, (said + errors)[-4000:]


def lose_a_node(
    process: subprocess.Popen[str], cluster: Raylets, is_midway: Callable[[], bool]
) -> None:
    """Kill the last node with -9 once the driver, which still works, has come so far."""
    while not is_midway():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    assert process.poll() is None
    cluster.kill(-1)


@contextmanager
def chat_server(root: Path) -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, str(CHAOS / "chat_server.py"), str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        yield f"compatible/tiny@http://127.0.0.1:{server.stdout.readline().strip()}"
        server.stdin.close()


def make_clips(folder: Path, n_clips: int, n_frames: int) -> None:
    for number in range(n_clips):
        side = ("real", "generated/Veo", "real", "generated/Sora")[number % 4]
        file = folder / side / f"clip{number:03d}.mp4"
        file.parent.mkdir(parents=True, exist_ok=True)
        recipe = ClipRecipe(width=96, height=64, n_frames=n_frames, seed=number)
        file.write_bytes(synthesise(recipe))


def answers(run: Path) -> dict[str, tuple[str, ...]]:
    table = LanceTable(StorageLocation(str(run)) / "answers.lance", ANSWERS)
    return {row["key"]: (row["text"], row["failure_reason"], row["clip"]) for row in table.rows()}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_an_eval_that_loses_a_node_has_the_rows_and_the_scorecard_of_local(
    tmp_path, capsys
) -> None:
    n_clips, footage = 120, tmp_path / "footage"
    make_clips(footage, n_clips, n_frames=8)
    runs = tmp_path / "runs"
    scores = {}
    with chat_server(runs) as model, raylets(3) as cluster:
        for name, words in (("local", {}), ("ray", cluster.environment)):
            (runs / name).mkdir(parents=True)
            asks = runs / name / "asks.log"
            shown = ["--protocol", "reality", "--nframe", "4", "--trusted", "--engine", name]
            out = ["--out", str(tmp_path / name), "--model", f"{model}/{name}/v1"]
            began_s = time.monotonic()
            with started([*UNREEL, "eval", str(footage), *shown, *out], **words) as process:
                if name == "ray":
                    lose_a_node(process, cluster, lambda: _lines(asks) > n_clips // 3)  # noqa: B023
                end(process)
            seconds = time.monotonic() - began_s
            scored = follow([*UNREEL, "score", str(tmp_path / name), "--json"])
            scores[name] = json.loads(scored.stdout) | {"run": "its folder"}
    kept = answers(tmp_path / "ray")
    assert len(kept) == n_clips
    assert kept == answers(tmp_path / "local")
    assert scores["ray"] == scores["local"]
    n_asked = Counter(line.split()[0] for line in asks.read_text().splitlines())
    n_again = sum(n_asked.values()) - len(n_asked)
    with capsys.disabled():
        sys.stdout.write(f"\n{n_clips} clips in {seconds:.0f} s, {n_again} asked again\n")
    # Two workers of the node, each with two blocks at work and two that wait, of four rows.
    assert n_again <= 2 * 4 * 4


def _lines(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0
