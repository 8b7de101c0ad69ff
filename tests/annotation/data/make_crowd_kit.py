"""Write crowd_kit.json: what crowd-kit makes of seeded labels.

    python -m venv crowd && crowd/bin/pip install crowd-kit==1.4.2
    crowd/bin/python tests/annotation/data/make_crowd_kit.py > tests/annotation/data/crowd_kit.json

Its packages are too many for the environment of the tests, so its numbers are kept instead.
"""

import json
import sys
from typing import Any

import numpy as np

CASES = {
    "pairs of labels": (8, 120, 2, 3),
    "five labels": (12, 150, 5, 4),
    "three labels": (6, 100, 3, 4),
}
"""Annotators, tasks, labels, and answers to each task."""


def draw(people: int, tasks: int, labels: int, overlap: int) -> dict[str, list[int]]:
    """Seeded answers: the first annotator answers at random, the last is nearly always right."""
    rng = np.random.default_rng([people, tasks, labels, overlap])
    truth = rng.integers(labels, size=tasks)
    skill = np.linspace(0, 0.95, people)
    task = np.repeat(np.arange(tasks), overlap)
    who = np.concatenate([rng.permutation(people)[:overlap] for _ in range(tasks)])
    guess = rng.integers(labels, size=len(task))
    said = np.where(rng.random(len(task)) < skill[who], truth[task], guess)
    return {"annotator": who.tolist(), "task": task.tolist(), "label": said.tolist()}


def fit(labels: dict[str, list[int]]) -> list[list[float]]:
    """Crowd-kit's chances of each label of each task, after as many rounds as it takes."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    table = pd.DataFrame(labels).rename(columns={"annotator": "worker"})
    model: Any = DawidSkene(n_iter=400, tol=1e-12)
    chances = model.fit(table).probas_.sort_index()
    ordered: list[list[float]] = chances[sorted(chances.columns)].round(7).to_numpy().tolist()
    return ordered


if __name__ == "__main__":
    drawn = {name: draw(*case) for name, case in CASES.items()}
    found = {name: {**labels, "chances": fit(labels)} for name, labels in drawn.items()}
    json.dump(found, sys.stdout, separators=(",", ":"))
