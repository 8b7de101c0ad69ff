"""Near-duplicates over many fingerprints: how many planted copies are found, right ones, seconds, memory.

    python benchmarks/million_fingerprints.py --rows 100000
    python benchmarks/million_fingerprints.py --rows 1000000 --folder prints --json
    python benchmarks/million_fingerprints.py --rows 20000 --all-pairs

Fingerprints are drawn from a seed, see `drawn_prints.py`; the last hundredth of them are copies of others. Recall counts
the planted pairs that the comparison of all pairs would find. `--all-pairs` makes that comparison too and counts every
pair it finds; `--fresh` compares the last N with the others, as a new batch.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from drawn_prints import BLOCK, FRAMES, KINDS, Drawn, draw_block
from numpy.typing import NDArray
from peak_memory import peak_mib

from unreel.media import near_duplicates
from unreel.media.fingerprint import HASH_WORDS, WAYS
from unreel.media.near_duplicates import NearDuplicateClipPair, find_near_duplicates
from unreel.stats.clusters import group_connected_names

_SHAPE = (len(WAYS), FRAMES, HASH_WORDS)
_ROW = len(WAYS) * FRAMES * HASH_WORDS * 8
_COPIES = 0.01
_READ_AT_ONCE = 4_096


class FilePrints:
    """Fingerprints whose hashes lie in a file."""

    def __init__(self, folder: Path) -> None:
        self.sketches = np.load(folder / "sketches.npy")
        self.names: Sequence[str] = [f"{place:09d}" for place in range(len(self.sketches))]
        self._file = os.open(folder / "words.bin", os.O_RDONLY)

    def words(self, places: NDArray[np.intp]) -> NDArray[np.uint64]:
        """The hashes of the clips at `places`."""
        runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
        read = b"".join(os.pread(self._file, len(run) * _ROW, int(run[0]) * _ROW) for run in runs)
        return np.frombuffer(read, np.uint64).reshape(-1, *_SHAPE)

    def blocks(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.uint64]]]:
        """The hashes of all clips."""
        for start in range(0, len(self.sketches), _READ_AT_ONCE):
            places = np.arange(start, min(start + _READ_AT_ONCE, len(self.sketches)))
            yield places, self.words(places)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", type=int, default=0, help="compare the last so many with all")
    parser.add_argument("--all-pairs", action="store_true", help="compare all pairs too")
    parser.add_argument(
        "--folder", type=Path, help="keeps the drawn fingerprints for the next call"
    )
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        told = _measure(asked, asked.folder or Path(passing))
    if asked.json:
        print(json.dumps(told))
    else:
        print("\n".join(f"{name:32} {value}" for name, value in told.items()))


def _measure(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    if not (folder / "planted.npy").exists():
        with ProcessPoolExecutor(1, get_context("spawn")) as own:  # whose memory is not ours
            own.submit(_draw, folder, asked.rows, asked.seed).result()
    planted = np.load(folder / "planted.npy")
    prints = FilePrints(folder)
    n_rows = len(prints.sketches)
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    matches = find_near_duplicates(
        prints, known=n_rows - asked.fresh if asked.fresh else 0, seed=asked.seed, inside=folder
    )
    told: dict[str, Any] = {
        "rows": n_rows,
        "wall_s": round(time.perf_counter() - wall_s, 1),
        "cpu_s": round(time.process_time() - cpu_s, 1),
        "peak_mib": peak_mib(),
        "matches": len(matches),
    }
    if asked.fresh:
        planted = planted[planted[:, 1] >= n_rows - asked.fresh]
    told |= _judged(prints, planted, matches)
    if asked.all_pairs:
        told |= _beside_all_pairs(prints, matches, known=n_rows - asked.fresh if asked.fresh else 0)
    return told


def _draw(folder: Path, n_rows: int, seed: int) -> None:
    """Writes originals in order and their copies behind them."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [min(BLOCK, n_rows - start) for start in range(0, n_rows, BLOCK)]
    drawn = partial(_block, seed=seed)
    sketches, copies, planted = [], [], []
    place = 0
    with (folder / "words.bin").open("wb") as file, ProcessPoolExecutor(2) as pool:
        for block in pool.map(drawn, range(len(sizes)), sizes):
            n_own = len(block.words) - len(block.copied)
            file.write(block.words[:n_own].tobytes())
            sketches.append(block.sketches[:n_own])
            copies.append((block.words[n_own:], block.sketches[n_own:]))
            planted += [
                (place + own, KINDS.index(kind))
                for own, kind in zip(block.copied.tolist(), block.kinds, strict=True)
            ]
            place += n_own
        for words, sketch in copies:
            file.write(words.tobytes())
            sketches.append(sketch)
    numbered = [(first, place + number, kind) for number, (first, kind) in enumerate(planted)]
    np.save(folder / "sketches.npy", np.concatenate(sketches))
    np.save(folder / "planted.npy", np.array(numbered, np.intp).reshape(-1, 3))


def _block(number: int, size: int, *, seed: int) -> Drawn:
    return draw_block(number, round(size * (1 - _COPIES)), copies=_COPIES, seed=seed)


def _judged(
    prints: FilePrints, planted: NDArray[np.intp], matches: Sequence[NearDuplicateClipPair]
) -> dict[str, Any]:
    """Planted pairs that belong together by `matches`, of those that match when they are compared alone."""
    groups = group_connected_names(prints.names, [(match.first, match.second) for match in matches])
    family = {name: number for number, group in enumerate(groups) for name in group}
    told: dict[str, Any] = {}
    n_found = n_all = 0
    for number, kind in enumerate(KINDS):
        pairs = planted[planted[:, 2] == number, :2]
        there = [pair for pair in pairs.tolist() if _match_alone(prints, *pair)]
        found = [family[prints.names[i]] == family[prints.names[j]] for i, j in there]
        told[f"planted {kind}"] = len(pairs)
        told[f"found by all pairs, {kind}"] = len(there)
        told[f"recall {kind}"] = round(sum(found) / max(1, len(found)), 4)
        n_found, n_all = n_found + sum(found), n_all + len(found)
    told["found by all pairs"] = n_all
    told["recall"] = round(n_found / max(1, n_all), 4)
    right = {frozenset(pair) for pair in planted[:, :2].tolist()}
    shown = [(int(match.first), int(match.second)) for match in matches]
    blank = ~prints.sketches.any(axis=1) | (np.ptp(prints.sketches, axis=1) == 0)
    told["matches of blank clips"] = sum(bool(blank[i] and blank[j]) for i, j in shown)
    wrong = [
        pair
        for pair in shown
        if frozenset(pair) not in right and not (blank[pair[0]] and blank[pair[1]])
    ]
    told["precision"] = round(
        1 - len(wrong) / max(1, len(shown) - told["matches of blank clips"]), 4
    )
    return told


def _match_alone(prints: FilePrints, first: int, second: int) -> bool:
    pair = _Some(prints, np.array([first, second]))
    return bool(find_near_duplicates(pair))


class _Some:
    """A few of many fingerprints."""

    def __init__(self, prints: FilePrints, places: NDArray[np.intp]) -> None:
        self.names = [prints.names[place] for place in places.tolist()]
        self.sketches = prints.sketches[places]
        self._words = prints.words(places)

    def words(self, places: NDArray[np.intp]) -> NDArray[np.uint64]:
        """The hashes of those at `places`."""
        return self._words[places]

    def blocks(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.uint64]]]:
        """All of them at once."""
        yield np.arange(len(self.names)), self._words


def _beside_all_pairs(
    prints: FilePrints, pairs: Sequence[NearDuplicateClipPair], *, known: int
) -> dict[str, Any]:
    few, near_duplicates.FEW = near_duplicates.FEW, len(prints.sketches)
    start_s = time.perf_counter()
    every = find_near_duplicates(prints, known=known)
    near_duplicates.FEW = few
    groups = [
        {
            tuple(group)
            for group in group_connected_names(prints.names, [(m.first, m.second) for m in found])
        }
        for found in (every, pairs)
    ]
    families = [{group for group in own if len(group) > 1} for own in groups]
    return {
        "all pairs: wall_s": round(time.perf_counter() - start_s, 1),
        "all pairs: matches": len(every),
        "all pairs: families": len(families[0]),
        "of those the same here": len(families[0] & families[1]),
        "families only here": len(families[1] - families[0]),
    }


if __name__ == "__main__":
    main()
