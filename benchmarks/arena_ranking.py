"""What ranking a season takes: time and memory from 10 x 10 to 50 x 50 entrants over 1,000 scenes.

    python benchmarks/arena_ranking.py
    python benchmarks/arena_ranking.py --sizes 10 20 --scenes 200 --json

Every scene has one real clip and one by each creator, and every reviewer answers all of them. Each size runs
in a process of its own: both boards, the matrix, who stands above whom and the skill model, with
intervals. Prints answers, seconds, seconds of work and the most memory that the process held.
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np
from peak_memory import peak_mib

from unreel.arena.answers.answer_table import NOBODY, SeasonAnswerTable, SeasonClips
from unreel.arena.boards.ranking import rank_season_entrants
from unreel.stats.resampling import RESAMPLES


def make_play(size: int, scenes: int, *, nuisances: int = 0, seed: int = 0) -> SeasonAnswerTable:
    """Recorded answers of `size` reviewers about `size` creators."""
    rng = np.random.default_rng(seed)
    creator = np.tile(np.arange(NOBODY, size, dtype=np.int32), scenes)
    scene = np.repeat(np.arange(scenes, dtype=np.int32), size + 1)
    names = ("length", "resolution", "motion", "sound")[:nuisances]
    lineup = SeasonClips(
        names=tuple(f"clip-{number}" for number in range(len(creator))),
        creators=tuple(f"creator-{number:02}" for number in range(size)),
        scenes=tuple(f"scene-{number:05}" for number in range(scenes)),
        creator=creator,
        scene=scene,
        control=np.full(len(creator), NOBODY, dtype=np.int32),
        nuisances=names,
        nuisance=rng.normal(size=(len(creator), nuisances)),
    )
    ability, realism = np.linspace(0, 4, size), rng.permutation(np.linspace(-2, 2, size))
    gap = np.where(
        creator == NOBODY, 0.0, ability[:, None] - realism[np.maximum(creator, 0)][None, :]
    )
    said = rng.random(gap.shape) < 1 / (1 + np.exp(1.0 - gap))
    return SeasonAnswerTable(
        clips=lineup,
        condition="benchmark",
        reviewers=tuple(f"reviewer-{number:02}" for number in range(size)),
        reviewer=np.repeat(np.arange(size, dtype=np.int32), len(creator)),
        clip=np.tile(np.arange(len(creator), dtype=np.int32), size),
        answer_codes=said.ravel().astype(np.int8),
    )


def measure(size: int, scenes: int, *, nuisances: int, resamples: int) -> dict[str, float]:
    """Rank one play in this process."""
    play = make_play(size, scenes, nuisances=nuisances)
    started, worked = time.perf_counter(), time.process_time()
    rank_season_entrants(play, seed=0, resamples=resamples, nuisances=play.clips.nuisances)
    return {
        "entrants": size,
        "scenes": scenes,
        "nuisances": nuisances,
        "answers": len(play.answer_codes),
        "seconds": round(time.perf_counter() - started, 2),
        "cpu_s": round(time.process_time() - worked, 2),
        "peak_mib": peak_mib(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 30, 40, 50])
    parser.add_argument("--scenes", type=int, default=1000)
    parser.add_argument("--nuisances", type=int, default=0)
    parser.add_argument("--resamples", type=int, default=RESAMPLES)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    given = {"nuisances": asked.nuisances, "resamples": asked.resamples}
    if asked.alone:
        print(json.dumps(measure(asked.sizes[0], asked.scenes, **given)))
        return
    shared = [f"--{name}={value}" for name, value in given.items()]
    for size in asked.sizes:
        typed = [
            sys.executable,
            __file__,
            "--alone",
            "--sizes",
            str(size),
            f"--scenes={asked.scenes}",
        ]
        done = subprocess.run([*typed, *shared], check=True, capture_output=True, text=True)
        told = json.loads(done.stdout)
        line = "{entrants} x {entrants} over {scenes} scenes, {answers:,} answers: {seconds} s ({cpu_s} s of work), {peak_mib} MiB"
        print(done.stdout.strip() if asked.json else line.format(**told))


if __name__ == "__main__":
    main()
