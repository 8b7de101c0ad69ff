"""A tiny training: drawn clips, a tiny model, a few steps. As a program it can be killed from outside."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a program it has no tests around it

from tiny_models import write_tiny
from training import sets
from unreel.core.settings import EnvironmentSettings
from unreel.engine.storage_access import build_clip_access_settings
from unreel.training.recipe import TrainRecipe

N_CLIPS = 10


def write_lab(root: Path, family: Any = "qwen2.5-vl", *, n_clips: int = N_CLIPS) -> Path:
    """Clips and a model to train on them, below `root`."""
    entries = [
        ((sets.fake if i % 2 else sets.real)(f"clip{i}", group=f"scene{i}"), sets.clip(i))
        for i in range(n_clips)
    ]
    sets.write_set(root / "clips", entries)
    write_tiny(family, root / "base")
    return root


def recipe(root: Path, family: Any = "qwen2.5-vl", **changes: Any) -> TrainRecipe:
    """Six steps of two examples; `changes` replace single settings of sections."""
    sections: dict[str, Any] = {
        "model": {
            "name": str(root / "base"),
            "family": family,
            "tune": "full",
            "precision": "fp32",
            "gradient_checkpointing": False,
        },
        "optimise": {"max_steps": 6, "batch_size": 2, "learning_rate": 1e-3, "workers": 0},
        "watch": {"every": 100, "save_every": 2, "clips": 2},
        "max_tokens": 8,
    }
    for name, given in changes.items():
        sections[name] = sections.get(name, {}) | given if isinstance(given, dict) else given
    return sets.recipe(root / "clips", **sections)


def run(root: Path, folder: Path, *, family: Any = "qwen2.5-vl", **changes: Any) -> Any:
    """Train in this process."""
    import torch

    from unreel.training.run import TrainingCallbacks, train

    torch.set_num_threads(1)
    told = {name: changes.pop(name) for name in ("going", "callbacks") if name in changes}
    access = build_clip_access_settings(EnvironmentSettings(), trusted=True)
    steps: list[int] = []
    stop_at = changes.pop("stop_at", None)
    counting = TrainingCallbacks(
        on_step=lambda step, _loss, _vigil: steps.append(step),
        should_stop=lambda: stop_at is not None and len(steps) + 1 >= stop_at,
    )
    told.setdefault("callbacks", counting)
    return train(recipe(root, family, **changes), folder, access=access, **told)


def main() -> None:
    """`lab.py ROOT FOLDER CHANGES [N]`: tells each step; with N it kills itself at the N-th look at the disk."""
    import warnings

    warnings.simplefilter("ignore")
    from unreel.training.run import TrainingCallbacks

    root, folder, changes = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    if len(sys.argv) > 4:
        _die_at_sync(int(sys.argv[4]))
    told = TrainingCallbacks(on_step=lambda step, loss, _: _say(f"{step} {loss:.7f}"))
    trained = run(root, folder, callbacks=told, **changes)
    _say(f"ended {trained.ended} {trained.step} {trained.loss:.7f}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _die_at_sync(last: int) -> None:
    """End as by a power cut when so many files were put on the disk."""
    sync, done = os.fsync, []

    def counted(descriptor: int) -> None:
        done.append(descriptor)
        if len(done) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        sync(descriptor)

    os.fsync = counted


if __name__ == "__main__":
    main()
