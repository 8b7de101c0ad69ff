"""Answers of a season that nobody played: as many creators, reviewers and clips as a test wants."""

from collections.abc import Collection, Mapping

import numpy as np

from unreel.arena.answers.answer_table import (
    ANSWERED_GENERATED,
    ANSWERED_REAL,
    NOBODY,
    SILENT,
    SeasonAnswerTable,
    SeasonClips,
)

LENGTH = "length"
SILENT_SHARE = 0.02


def lineup(
    creators: tuple[str, ...],
    *,
    n_scenes: int,
    controls: tuple[str, ...] = (),
    nuisance: np.ndarray | None = None,
) -> SeasonClips:
    """Of each scene the real clip, a clip by each creator, and each control."""
    scenes = tuple(f"scene-{number:04}" for number in range(n_scenes))
    makers = (("real", NOBODY, NOBODY), *((name, at, NOBODY) for at, name in enumerate(creators)))
    makers += tuple((name, NOBODY, at) for at, name in enumerate(controls))
    rows = [(f"{scene}/{name}", c, s, d) for s, scene in enumerate(scenes) for name, c, d in makers]
    lengths = np.full((len(rows), 1), 5.0) if nuisance is None else nuisance
    return SeasonClips(
        names=tuple(name for name, *_ in rows),
        creators=creators,
        scenes=scenes,
        creator=np.array([c for _, c, _, _ in rows], dtype=np.int32),
        scene=np.array([s for _, _, s, _ in rows], dtype=np.int32),
        control=np.array([d for _, _, _, d in rows], dtype=np.int32),
        controls=controls,
        nuisances=(LENGTH,),
        nuisance=lengths,
    )


def play(
    shown: SeasonClips,
    abilities: Mapping[str, float],
    *,
    seed: int = 0,
    condition: str = "uniform-8",
    floors: Collection[str] = (),
    never_met: Collection[tuple[str, str]] = (),
) -> SeasonAnswerTable:
    """Everyone about everything, but for the pairs (reviewer, creator) of `never_met`.

    Whoever has ability 0 tosses a coin; each creator is harder to catch than the one before it.
    """
    draw = np.random.default_rng(seed)
    reviewers = tuple(sorted(abilities))
    ability = np.array([abilities[name] for name in reviewers])
    realism = np.linspace(-1.0, 1.0, max(1, len(shown.creators)))
    is_generated = shown.creator != NOBODY
    harder = np.where(is_generated, realism[np.maximum(shown.creator, 0)], 0.0)
    side = np.where(is_generated, 1.0, -1.0)
    slope = ability[:, None] * (side * (1.5 - side * harder))[None, :]
    says = draw.random(slope.shape) < 1 / (1 + np.exp(-slope))
    said = np.where(says, ANSWERED_GENERATED, ANSWERED_REAL)
    said[draw.random(said.shape) < SILENT_SHARE] = SILENT
    asked = np.ones(said.shape, dtype=bool)
    for who, creator in never_met:
        asked[reviewers.index(who), shown.creator == shown.creators.index(creator)] = False
    reviewer, clip = np.nonzero(asked)
    return SeasonAnswerTable(
        clips=shown,
        condition=condition,
        reviewers=reviewers,
        floors=frozenset(floors),
        reviewer=reviewer.astype(np.int32),
        clip=clip.astype(np.int32),
        answer_codes=said[asked].astype(np.int8),
    )
