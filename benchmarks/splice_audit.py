"""Temporal audit of spliced videos: are the cuts exact, and does the file reveal the segments?

    python benchmarks/splice_audit.py --videos 200 --length 180

Draws short clips, splices them by a recipe with `[splice]` and `[audit]`, compares the frames at both sides of
every cut with the source clips, and audits windows of the videos. Real and generated clips show scenes of one
distribution. The generated ones are coded with `--crf`: what the audit finds is left by the codec or the splice.
Then it joins some of the clips badly (another codec, no grain match) and audits these too. `--clips` adds the
filmed and generated clips of a folder with `real/` and `generated/`. Nothing leaves this machine.
"""

import argparse
import json
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from curation.splices import (
    HEIGHT,
    READER,
    WIDTH,
    build_run,
    count_exact_ends,
    draw_sources,
    splice_badly,
)
from unreel.core.failure import Failure
from unreel.core.span import TimeSpan
from unreel.curation.audit.clip_features import AuditFeatureSet, WindowAuditData
from unreel.curation.audit.label_leaks import audit_label_leaks
from unreel.curation.audit.windows import read_window_features
from unreel.curation.curation_run import run_curation
from unreel.curation.segment import ClipSegment
from unreel.curation.splice.step import SPLICE, get_part_spans
from unreel.curation.step_execution import to_json_values
from unreel.media.normalise import NormalisedClipFormat


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--videos", type=int, default=200)
    parser.add_argument("--length", type=int, default=180, help="seconds of each video")
    parser.add_argument("--rate", type=int, default=12, help="frames per second")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn clips")
    parser.add_argument("--crf", type=int, help="of generated clips; as real ones by default")
    parser.add_argument("--inject", type=float, default=0.0, help="share of real clips with a twin")
    parser.add_argument("--clips", type=Path, help="folder with real/ and generated/")
    parser.add_argument("--collect", type=Path, help="file of windows, for calls with other seeds")
    parser.add_argument("--bad", type=int, default=30, help="deliberately bad splices")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="unreel-splice-") as folder:
        print(json.dumps(_measure(asked, Path(folder)), indent=2))


def _measure(asked: argparse.Namespace, folder: Path) -> dict[str, object]:
    begun, used = time.monotonic(), time.process_time()
    mean_s = 4.6  # of two lengths from 3 to 8 seconds, the shorter is used
    root = folder / "sources"
    draw_sources(
        root,
        n_real=int(asked.videos * asked.length / mean_s),
        n_generated=3 * asked.videos // 2,
        rate=asked.rate,
        lengths_s=(3.0, 8.0),
        generated_crf=asked.crf,
        seed=asked.seed,
    )
    if asked.clips:
        for path in sorted(asked.clips.glob("[rg]*/*.mp4")):
            into = root / path.parent.name / ("" if path.parent.name == "real" else "Shared")
            into.mkdir(exist_ok=True)
            shutil.copy(path, into)
    print(f"drawn after {time.monotonic() - begun:.0f} s", file=sys.stderr)
    sections = {"splice": {"length_s": asked.length, "share": 0.75, "segments": 3}}
    if asked.inject:
        sections["inject"] = {"share": asked.inject}
    run = build_run(root, folder / "out", rate=asked.rate, **sections)
    state = run_curation(run)
    print(f"spliced after {time.monotonic() - begun:.0f} s", file=sys.stderr)
    files = {path.relative_to(root).as_posix(): path for path in root.rglob("*.mp4")}
    sources = files | {name.removesuffix(".mp4"): path for name, path in files.items()}
    pieces = list(state.pieces)
    right, total = count_exact_ends(pieces, sources, rate=asked.rate)
    assert state.audit is not None
    return {
        "videos": len(pieces),
        "seconds": asked.length,
        "size": f"{WIDTH}x{HEIGHT} at {asked.rate}",
        "segments": sum(len(piece.entry.traces) for piece in pieces),
        "exact ends": f"{right} of {total}",
        "views": {view["view"]: _show(view) for view in state.audit.document["views"]},
        "all calls": _audit_together(asked, pieces),
        "bad splice": _audit(_read_windows(_iter_bad(asked, folder, files))),
        "wall s": round(time.monotonic() - begun),
        "processor s": round(time.process_time() - used),
    }


def _show(view: dict[str, object]) -> dict[str, object]:
    kept = ("finding", "auc", "p_value", "n_real", "n_generated")
    leaks = [leak["feature"] for leak in view["leaks"]]  # type: ignore[attr-defined]
    return {key: view[key] for key in kept} | {"tells most": leaks[:3]}


Video = tuple[Path, str, Sequence[TimeSpan], Sequence[TimeSpan]]
"""File, group, parts and generated segments."""


def _read_windows(videos: Iterable[Video]) -> list[WindowAuditData]:
    windows: list[WindowAuditData] = []
    for path, group, parts, segments in videos:
        own = read_window_features(
            path, clip=path.stem, group=group, parts=parts, segments=segments, reader=READER
        )
        assert not isinstance(own, Failure)
        windows += own
    return windows


def _audit(windows: Iterable[WindowAuditData]) -> dict[str, object]:
    judged = audit_label_leaks(windows, seed=0, views=[AuditFeatureSet.WINDOW])
    return _show(to_json_values(judged)["views"][0])


def _audit_together(asked: argparse.Namespace, pieces: Sequence[ClipSegment]) -> dict[str, object]:
    """Audit the windows of this call and of earlier ones, and those of videos without a shared segment."""
    kinds: list[list[WindowAuditData]] = [[], []]
    if asked.collect and asked.collect.exists():
        kinds = pickle.loads(asked.collect.read_bytes())
    for piece in pieces:
        shared = any("generated/Shared" in name for name, _ in piece.notes[SPLICE])
        spans = [trace.span for trace in piece.entry.traces]
        group = f"{asked.seed} {piece.entry.group}"
        kinds[shared] += _read_windows(
            [(Path(piece.clip.location), group, get_part_spans(piece), spans)]
        )
    if asked.collect:
        asked.collect.write_bytes(pickle.dumps(kinds))
    return {"all": _audit(kinds[0] + kinds[1]), "drawn segments alone": _audit(kinds[0])}


def _iter_bad(asked: argparse.Namespace, folder: Path, files: dict[str, Path]) -> Iterator[Video]:
    form = NormalisedClipFormat(width=WIDTH, height=HEIGHT, rate=Fraction(asked.rate))
    real = [
        path
        for name, path in sorted(files.items())
        if path.stem.isdigit() and name.startswith("real/")
    ]
    made = [path for name, path in sorted(files.items()) if name.startswith("generated/Drawn")]
    for number in range(min(asked.bad, len(made), len(real) // 4)):
        into = folder / f"bad-{number}.mp4"
        near = real[4 * number : 4 * number + 4]
        yield into, str(number), *splice_badly(near, made[number : number + 1], into, form=form)


if __name__ == "__main__":
    main()
