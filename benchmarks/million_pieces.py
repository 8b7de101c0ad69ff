"""What a curation of very many pieces takes of its driver: memory, seconds, and rows a second of every step.

    python benchmarks/million_pieces.py --rows 10000 100000
    python benchmarks/million_pieces.py --rows 2000 --killed --json

No file is opened: what steps would find in a clip is drawn from a seed, by the key of the question. All
else is the real thing: the list of a source, the tables of findings, near-duplicates (one clip in a hundred is
a copy of another), shots, screens, lengths, rendering (a stand-in names the file that it would make), the
audit, splits, manifest, card and checksums, with `media = "in_place"`. Describing and clustering are left out
because they need models, injection and watermarks because they are more stand-ins of the same kind.

Each size runs in a process of its own. With `--killed` a second one is killed with -9 after its scan and while
it decides on lengths, goes on, and must freeze the same bytes.
"""

import argparse
import csv
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from peak_memory import peak_mib

from unreel.cli.process_signals import limit_malloc_arenas
from unreel.core.clip import ClipFacts, ClipId, VideoFacts
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.settings import read_environment_settings
from unreel.curation.audit.step import AuditFrameFeaturesWithWatermarks
from unreel.curation.curation_run import CurationRecipeJob, run_curation
from unreel.curation.normalise import StoredClip
from unreel.curation.recipe import parse_curation_recipe
from unreel.curation.segment import MeasuredShot, ScannedFileWithFingerprint, build_hashed_path
from unreel.curation.source_clips import IngestedFile
from unreel.curation.step_execution import (
    CurationContext,
    CurationStepRequest,
    Look,
    VersionedCurationStep,
    format_canonical_json,
    to_json_values,
)
from unreel.curation.watermark.detection import WatermarkSearchResult
from unreel.engine.location import StorageLocation
from unreel.engine.progress import JobCallbacks
from unreel.engine.stage import Row, Stage, WorkerResources
from unreel.engine.storage_access import ClipAccessSettings
from unreel.media.fingerprint import HASH_WORDS, SKETCH_SIDE, WAYS, BorderWidths, ClipFingerprint
from unreel.media.messages import N_PICKED

COPIES_EVERY = 100
"""One clip in so many shows the same as another."""
HASHES = len(WAYS) * N_PICKED * HASH_WORDS * 8
RECIPE: dict[str, Any] = {
    "name": "a million pieces",
    "seed": 1,
    "split": {"shortest_s": "1/2"},
    "crop": {},
    "screen": {"screens": {"motion": {}, "length": {}}},
    "lengths": {},
    "audit": {"texts": False},
    "freeze": {"media": "in_place", "shares": [8, 1, 1]},
}


def facts(length_s: Fraction, draw: Random) -> ClipFacts:
    """What a container would say."""
    rate = Fraction(24)
    video = VideoFacts(
        codec="h264",
        pixel_format="yuv420p",
        width=draw.choice((640, 1280, 1920)),
        height=720,
        rotation_deg=0,
        n_frames=int(length_s * rate),
        average_rate=rate,
        variable_rate=False,
        first_at_s=Fraction(0),
        duration_s=length_s,
    )
    return ClipFacts(container="mp4", size_bytes=draw.randrange(1 << 20, 1 << 24), video=video)


def drawn_length_s(draw: Random) -> Fraction:
    """Between two seconds and ten, in whole frames."""
    return Fraction(draw.randrange(48, 240), 24)


def scanned(row: Row, draw: Random) -> ScannedFileWithFingerprint:
    """One shot or two, and a fingerprint: nearly that of the clip before where this one is its copy."""
    number = int(row["name"].rpartition("-")[2])
    is_copy = number % COPIES_EVERY == 2  # of the one before it with the same label
    looks = Random(number - 2 if is_copy else number)
    sketch, hashes = looks.randbytes(SKETCH_SIDE**2), bytearray(looks.randbytes(HASHES))
    if is_copy:
        for place in range(0, HASHES, 64):
            hashes[place] ^= 1
    ends = (48,) if draw.random() < 0.9 else (24, 48)
    shots = [
        MeasuredShot(
            first_frame=first,
            end_frame=end,
            start_s=Fraction(first, 24),
            length_s=Fraction(end - first, 24),
            borders=BorderWidths(left=8) if draw.random() < 0.05 else BorderWidths(),
            motion=draw.uniform(4, 40),
            sharpness=draw.uniform(1, 9),
            noise=draw.uniform(0, 9),
            lightness=draw.uniform(40, 200),
        )
        for first, end in zip((0, *ends), ends, strict=False)
    ]
    return ScannedFileWithFingerprint(
        shots=tuple(shots), fingerprint=ClipFingerprint(sketch=sketch, hashes=bytes(hashes))
    )


def find(step: str, row: Row, draw: Random) -> object:
    """What a step would find."""
    match step:
        case "ingest":
            clip = compute_placeholder_clip_id("drawn", row["name"])
            return IngestedFile(clip=clip, facts=facts(drawn_length_s(draw), draw))
        case "scan":
            return scanned(row, draw)
        case "render":
            made = ClipId(row["key"])
            length_s = drawn_length_s(draw)
            return StoredClip(
                made=made, name=build_hashed_path(made, ".mp4"), facts=facts(length_s, draw)
            )
        case _:
            names = ("noise", "sharpness", "brightness", "contrast", "saturation")
            frame = {name: round(draw.gauss(0, 1), 4) for name in names}
            return AuditFrameFeaturesWithWatermarks(frame=frame, marks=WatermarkSearchResult())


class Drawn(Stage):
    """Writes down what is drawn for a row, by its key."""

    resources = WorkerResources(in_flight=4)

    def __init__(self, step: str) -> None:
        self._step = step

    def __call__(self, row: Row) -> Row:
        """The row with its finding."""
        found = to_json_values(find(self._step, row, Random(row["key"])))
        return row | {"clip": found.get("clip", row["clip"]), "found": format_canonical_json(found)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBench(CurationContext):
    """A bench whose steps look into no file."""

    def ask(
        self,
        step: VersionedCurationStep[Any],
        requests: Iterable[CurationStepRequest],
        _look: Look[Any],
    ) -> Iterator[Any]:
        """What is drawn for each subject."""
        return self.ask_stage(step, requests, Drawn(step.name))


def write_source(folder: Path, n_rows: int) -> None:
    """A table of clips that nobody has: half of them real, in scenes of ten."""
    with (folder / "clips.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["file_name", "name", "label", "creator", "licence", "group"])
        for number in range(n_rows):
            label = "generated" if number % 2 else "real"
            creator = f"creator-{number % 7}" if number % 2 else ""
            name = f"clip-{number:08}"
            group = f"scene-{number // 10}"
            table.writerow([f"{name}.mp4", name, label, creator, "CC0", group])


def run(folder: Path, n_rows: int, *, without: list[str]) -> None:
    """One curation in this process, as the command would; tells each step as it is taken, and the end."""
    limit_malloc_arenas()
    if not (folder / "clips.csv").exists():
        write_source(folder, n_rows)
    recipe = RECIPE | {
        "source": {"path": str(folder / "clips.csv")},
        "duplicates": {"near": "drop"},
    }
    steps: list[dict[str, Any]] = []
    began = before = time.perf_counter()
    worked = time.process_time()

    def taken(step: str, n_pieces: int) -> None:
        nonlocal before, worked
        now, work = time.perf_counter(), time.process_time()
        told = {"step": step, "pieces": n_pieces, "seconds": round(now - before, 2)}
        told |= {"processor_s": round(work - worked, 2)}
        worked = work
        told |= {"rows_per_s": round(n_pieces / (now - before)), "peak_mib": peak_mib()}
        steps.append(told)
        before = now
        sys.stderr.write(json.dumps(told) + "\n")
        sys.stderr.flush()

    out = folder / "out"
    bench = DrawnBench(
        place=StorageLocation(str(out)),
        access=ClipAccessSettings(settings=read_environment_settings(), trusted=True),
        ledgers=out / "ledgers",
        callbacks=JobCallbacks(on_due=lambda step, n: print(f"due {step} {n}", file=sys.stderr)),
        on_taken=taken,
    )
    kept = {name: section for name, section in recipe.items() if name not in without}
    job = CurationRecipeJob(
        recipe=parse_curation_recipe(kept), root=folder, context=bench, accept_leak=True
    )
    state = run_curation(job)
    told = {
        "rows": n_rows,
        "clips": len(state.segments),
        "left_out": len(state.left_out),
        "digest": state.frozen.digest if state.frozen else "",
        "seconds": round(time.perf_counter() - began, 1),
        "processor_s": round(time.process_time(), 1),
        "peak_mib": peak_mib(),
        "bytes_a_piece": sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
        // n_rows,
        "steps": steps,
    }
    sys.stdout.write(json.dumps(told) + "\n")


def child(folder: Path, n_rows: int, without: list[str]) -> list[str]:
    """How this file is called for one curation."""
    typed = [sys.executable, __file__, "--rows", str(n_rows), "--inside", str(folder)]
    return typed + [word for name in without for word in ("--without", name)]


def kill_at(command: list[str], sign: str) -> bool:
    """Kill a curation with -9 once it tells `sign`; False where it ended before."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if sign in line:
                process.send_signal(signal.SIGKILL)
                break
    return process.returncode == -signal.SIGKILL


def measure(folder: Path, n_rows: int, *, killed: bool, without: list[str]) -> dict[str, Any]:
    """One size, in processes of its own."""
    calm = folder / f"{n_rows}"
    calm.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        child(calm, n_rows, without), check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    told: dict[str, Any] = json.loads(done.stdout)
    if killed:
        # The same folder under the same name, because a manifest in place names where files lie.
        (calm / "out").rename(calm / "calm")
        command = child(calm, n_rows, without)
        signs = ('"step": "scan"', "due lengths")
        kills = [kill_at(command, sign) for sign in signs]
        again = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        told["kills"] = sum(kills)
        told["same_after_kills"] = json.loads(again.stdout)["digest"] == told["digest"]
    return told


def main() -> None:
    """Measure each size and tell."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    options.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    options.add_argument("--folder", type=Path, help="keep everything there")
    options.add_argument("--killed", action="store_true", help="kill and go on, and compare")
    options.add_argument("--without", action="append", default=[], help="leave out this section")
    options.add_argument("--json", action="store_true")
    options.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.inside is not None:
        run(given.inside, given.rows[0], without=given.without)
        return
    with TemporaryDirectory(prefix="unreel-") as temporary:
        folder = given.folder or Path(temporary)
        for n_rows in given.rows:
            told = measure(folder, n_rows, killed=given.killed, without=given.without)
            if given.json:
                sys.stdout.write(json.dumps(told) + "\n")
                continue
            steps = told.pop("steps")
            sys.stdout.write(", ".join(f"{name} {value}" for name, value in told.items()) + "\n")
            for step in steps:
                sys.stdout.write(
                    f"  {step['step']:12} {step['pieces']:>10,} pieces {step['seconds']:>9.1f} s, "
                    f"{step['processor_s']:>9.1f} s of work {step['rows_per_s']:>8,} rows/s {step['peak_mib']:>6,} MiB\n"
                )


if __name__ == "__main__":
    main()
