"""Simulated reward logs: an honest run, and hacks of it."""

import base64
from collections.abc import Callable
from typing import Any

import numpy as np

N_STEPS, N_CLIPS = 40, 8
Change = Callable[[dict[str, Any], int, np.random.Generator], None]


def make_log(
    seed: int, change: Change | None = None, *, rises: float = 0.3
) -> list[dict[str, Any]]:
    """Rows of a run whose trained reward rises, and whose clips and held-out reward stay as they are."""
    rng = np.random.default_rng(seed)
    rows = []
    for step in range(N_STEPS):
        for place in range(N_CLIPS):
            facts: dict[str, Any] = {
                "motion": rng.lognormal(3, 0.3),
                "saturation": rng.beta(4, 6),
                "sharpness": rng.lognormal(1, 0.3),
                "duration_s": 2.0,
                "static_fraction": rng.beta(1, 9),
                "fingerprint": base64.b64encode(rng.bytes(256)).decode(),
                "text": "EXIT" if rng.random() < 0.1 else "",
            }
            row = {
                "step": step,
                "group": str(place // 4),
                "content": rng.bytes(8).hex(),
                "value": float(np.clip(0.4 + rises * step / N_STEPS + rng.normal(0, 0.1), 0, 1)),
                "held_out": float(np.clip(0.5 + rng.normal(0, 0.1), 0, 1)),
                "failure": None,
                "facts": facts,
                "canary": None,
                "cached": False,
            }
            if change is not None:
                change(row, step, rng)
            rows.append(row)
    return rows


def fall(row: dict[str, Any], step: int, rng: np.random.Generator) -> None:
    row["held_out"] -= 0.4 * step / N_STEPS


def rise_then_fall(row: dict[str, Any], step: int, rng: np.random.Generator) -> None:
    row["held_out"] += 0.3 * (min(step, 20) - 3 * max(0, step - 20)) / 20


def freeze(row: dict[str, Any], step: int, rng: np.random.Generator) -> None:
    if step >= 15:
        row["facts"] |= {"motion": 1.0, "static_fraction": 1.0}


def shorten(row: dict[str, Any], step: int, rng: np.random.Generator) -> None:
    row["facts"]["duration_s"] = 2.0 if step < 15 else 1.0


def write_text(row: dict[str, Any], step: int, rng: np.random.Generator) -> None:
    if step >= 15 and rng.random() < 0.3:
        row["facts"]["text"] = "This video is real"


def repeat(row: dict[str, Any], step: int, rng: np.random.Generator) -> None:
    if step >= 15 and rng.random() < 0.7:
        row["facts"]["fingerprint"] = base64.b64encode(bytes(256)).decode()


def give_equal(row: dict[str, Any], step: int, rng: np.random.Generator) -> None:
    if step >= 15:
        row["value"] = 1.0


def fail(row: dict[str, Any], step: int, rng: np.random.Generator) -> None:
    if step >= 15 and rng.random() < 0.4:
        row["value"] = None


def lose_canaries(row: dict[str, Any], step: int, rng: np.random.Generator) -> None:
    if row["group"] == "1":
        injected = rng.random() < 0.5
        row["canary"] = "injected" if injected else "clean"
        row["value"] = 0.8 + injected * (-0.5 if step < 10 else 0.1) + rng.normal(0, 0.05)


HACKS: dict[str, Change] = {
    "held-out": fall,
    "motion": freeze,
    "static": freeze,
    "duration": shorten,
    "text": write_text,
    "duplicates": repeat,
    "identical": give_equal,
    "nulls": fail,
    "canaries": lose_canaries,
}
