"""What is killed: a bare stage over made-up rows, or `unreel eval` over real clips."""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from chaos.clips import make_clips
from chaos.eval_trial import IN_FLIGHT, run_in
from chaos.harness import HERE, finish
from unreel.asking.answer_table import ANSWERS
from unreel.core.content_ids import digest
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable
from unreel.evaluation.scoring import score_run

PACE_ROWS = 10
MOST_UNCOMMITTED = IN_FLIGHT + 4 * PACE_ROWS
"""Rows in stages, in the committer's hands (at most two batches) and waiting for it (two)."""
OF_THE_WAY = ("attempt", "latency_us")
"""Columns that tell how an answer came about, and may differ from run to run."""


class Trial(Protocol):
    """One sort of run that can be killed and looked at."""

    most_uncommitted: int

    @property
    def options(self) -> tuple[str, ...]:
        """What its driver is started with."""
        ...

    def prepare(self, folder: Path) -> None:
        """Put into a fresh folder what the driver needs there."""
        ...

    def next_kill(self, folder: Path, chance: random.Random) -> str:
        """Where to kill it next, in the words of `harness.kill_at`."""
        ...

    def rows(self, folder: Path) -> dict[str, Row]:
        """All rows as readers see them; raises on a doubled key."""
        ...

    def result(self, folder: Path) -> object:
        """What must be equal however often it was killed."""
        ...

    def altered(self, folder: Path) -> list[str]:
        """Keys whose stored answer is not the one that was given, as far as that is known."""
        ...


def answered(rows: Mapping[str, Row]) -> dict[str, Row]:
    """The rows that hold no failure."""
    return {key: row for key, row in rows.items() if row["failure_reason"] is None}


def _plain(rows: Mapping[str, Row]) -> dict[str, Row]:
    return {
        key: {name: value for name, value in row.items() if name not in OF_THE_WAY}
        for key, row in rows.items()
    }


def _read(*tables: LanceTable) -> dict[str, Row]:
    return {row["key"]: row for table in tables if table.exists() for row in table.rows()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bare:
    """The engine with a stage that answers from the key alone."""

    n_rows: int
    steps: tuple[str, ...] = ("written", "committed", "asked")
    pace_rows: int = PACE_ROWS
    most_uncommitted: int = MOST_UNCOMMITTED
    stops: Iterator[str] = field(default_factory=lambda: iter(()))
    """The first kills; later ones are drawn at random."""

    @property
    def options(self) -> tuple[str, ...]:
        return ("--rows", str(self.n_rows), "--pace-rows", str(self.pace_rows))

    def prepare(self, folder: Path) -> None:
        """Nothing is needed."""

    def next_kill(self, folder: Path, chance: random.Random) -> str:
        planned = next(self.stops, None)
        if planned is not None:
            return planned
        step = chance.choice(self.steps)
        most = {"asked": self.n_rows // 10, "written": 5, "committed": 5}.get(step, 1)
        return f"{step}:{chance.randint(1, most)}"

    def rows(self, folder: Path) -> dict[str, Row]:
        return _read(LanceTable(StorageLocation(str(folder / "answers.lance")), ANSWERS))

    def result(self, folder: Path) -> object:
        return _plain(self.rows(folder))

    def altered(self, folder: Path) -> list[str]:
        rows = answered(self.rows(folder))
        return [key for key, row in rows.items() if row["text"] != digest("answer", key)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """`unreel.evaluation.run_job.evaluate` over real clips, asking a real server."""

    manifest: Path
    port: int
    n_clips: int
    place: StorageLocation | None = None
    """Where tables go: into the run's folder unless named."""
    engine: str = "local"
    retry: bool = False
    """Whether the runs that are killed ask again what a first run left as failures."""
    trusted: bool = False
    """Whether clips are opened in the driver: nothing of the engine hangs on it, and it starts sooner."""
    most_uncommitted: int = MOST_UNCOMMITTED
    pace_rows: int = PACE_ROWS
    stops: Iterator[str] = field(default_factory=lambda: iter(()))
    """Where to kill it, for a run too short to leave that to chance; then chance decides."""

    @property
    def options(self) -> tuple[str, ...]:
        how = ("--eval", "--engine", self.engine, "--pace-rows", str(self.pace_rows))
        return (*how, "--retry") if self.retry else how

    def prepare(self, folder: Path) -> None:
        place = StorageLocation(str(folder)) if self.place is None else self.place / folder.name
        job = {
            "benchmark": str(self.manifest),
            "model": f"compatible/tiny@http://127.0.0.1:{self.port}/{folder.name}/v1",
            "uri": place.uri,
            "options": dict(place.options),
            "trusted": self.trusted,
        }
        (folder / "job.json").write_text(json.dumps(job))

    def next_kill(self, folder: Path, chance: random.Random) -> str:
        planned = next(self.stops, None)
        if planned is not None:
            return planned
        surveyed = run_in(folder).clips.count() == self.n_clips
        if not surveyed:
            # Asking is what costs money: most kills shall fall there.
            step = chance.choice(["clips-written", "clips-committed"])
            count = chance.randint(max(1, self._commits // 4), max(1, self._commits // 2))
            return f"{step}:{count},answers-written:1"  # the survey may be over before
        step = chance.choice(["answers-written", "answers-committed", "request"])
        most = max(1, self._commits // 12)
        return f"{step}:{chance.randint(1, most * (self.pace_rows if step == 'request' else 1))}"

    @property
    def _commits(self) -> int:
        return self.n_clips // self.pace_rows

    def rows(self, folder: Path) -> dict[str, Row]:
        run = run_in(folder)
        return _read(run.clips, run.answers)

    def result(self, folder: Path) -> object:
        return _plain(self.rows(folder)), score_run(run_in(folder))

    def altered(self, folder: Path) -> list[str]:
        """Nothing is known: the server answers from frames, which are encoded on the way."""
        return []


def tell_apart(truth: object, end: object) -> str:
    """A sentence that is empty where two results are equal, and else shows rows that differ."""
    if truth == end:
        return ""
    wanted, found = (one[0] if isinstance(one, tuple) else one for one in (truth, end))
    assert isinstance(wanted, dict)
    assert isinstance(found, dict)
    apart = [key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key)]
    shown = [f"{wanted.get(key)} became {found.get(key)}" for key in apart[:2]]
    return f"the end differs from the undisturbed one in {len(apart)} rows: {'; '.join(shown)}"


def undisturbed(trial: Trial, folder: Path) -> object:
    """The result of a run that nobody kills."""
    trial.prepare(folder)
    finish(folder, *trial.options)
    return trial.result(folder)


@contextmanager
def chat_server(root: Path) -> Iterator[int]:
    """A chat server in a process of its own, for all runs in folders of `root`; its port."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "chat_server.py"), str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(timeout=30)
        process.stdout.close()


@contextmanager
def evaluation(root: Path, *, n_clips: int, **settings: Any) -> Iterator[Evaluation]:
    """Clips and a server for runs in folders of `root`."""
    with tempfile.TemporaryDirectory(prefix="unreel-clips-") as clips, chat_server(root) as port:
        manifest = make_clips(Path(clips), n_clips)
        settings = {"pace_rows": min(PACE_ROWS, max(2, n_clips // 12))} | settings
        yield Evaluation(manifest=manifest, port=port, n_clips=n_clips, **settings)
