"""From benchmarks to examples: the very questions, none dropped in silence, no scene on both sides."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance")  # examples are kept in tables

from training.sets import MELTS, clip, fake, real, recipe, write_set
from unreel.core.box import Box
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError
from unreel.core.judgement import Label, Rating
from unreel.core.settings import read_environment_settings
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt
from unreel.engine.storage_access import build_clip_access_settings
from unreel.training.examples.reading import TrainingExampleSet, read_training_examples
from unreel.training.recipe import TrainRecipe

Read = Callable[..., TrainingExampleSet]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    access = build_clip_access_settings(read_environment_settings(), trusted=True)

    def examples(wanted: TrainRecipe, **options: Any) -> TrainingExampleSet:
        return read_training_examples(wanted, access=access, folder=tmp_path / "kept", **options)

    return examples


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight scenes of a real clip and a generated one, the first of which has two traces."""
    root = tmp_path_factory.mktemp("scenes")
    entries = []
    for scene in range(8):
        group = f"scene-{scene}"
        entries.append((real(f"r{scene}", group=group), clip(scene)))
        traces = (MELTS, replace(MELTS, explanation="It floats.")) if scene == 0 else (MELTS,)
        entries.append((fake(f"f{scene}", group=group, traces=traces), clip(100 + scene)))
    return write_set(root, entries)


def names(examples: tuple[Any, ...]) -> set[str]:
    return {example.name for example in examples}


def test_each_annotation_row_is_an_example(read: Read, scenes: Path) -> None:
    found = read(recipe(scenes))
    every = (*found.train, *found.held_out)
    assert len(every) == 17
    assert len({example.key for example in every}) == 17
    reasons = [e.truth.explanation for e in every if e.name == "f0"]
    assert sorted(reasons) == ["It floats.", "The ball melts."]
    assert {e.truth.label for e in every if e.name == "r0"} == {Label.REAL}
    assert found.left_out.n == 0
    assert found.data[0].n_examples == 17


def test_no_scene_is_on_both_sides(read: Read, scenes: Path) -> None:
    found = read(recipe(scenes))
    assert found.train
    assert found.held_out
    assert {e.source for e in found.train}.isdisjoint({e.source for e in found.held_out})


def test_what_gives_no_example_is_counted_with_its_reason(read: Read, tmp_path: Path) -> None:
    torn = fake("torn", traces=(replace(MELTS, explanation="It is <think> odd </think>"),))
    span = TimeSpan(9_000_000, 9_500_000)
    late = replace(MELTS, span=span, track=(BoxAt(9_000_000, Box(0, 0, 1, 1)),))
    entries = [
        (real("a", group="1"), clip(1)),
        (fake("b", group="2"), clip(2)),
        (real("broken", group="3"), b"no video"),
        (real("again", group="4"), clip(1)),
        (fake("other", group="5"), clip(1)),
        (torn, clip(3)),
        (fake("late", traces=(late,)), clip(4)),
    ]
    root = write_set(tmp_path / "set", entries)
    found = read(recipe(root))
    assert names((*found.train, *found.held_out)) == {"a", "b"}
    assert found.left_out.n == 5
    assert {r.name for r in found.left_out.first} == {"broken", "again", "other", "torn", "late"}
    assert any(reason.endswith("about the same bytes") for reason in found.left_out.reasons)
    assert any("with another truth" in reason for reason in found.left_out.reasons)
    assert any("after the clip's end" in reason for reason in found.left_out.reasons)
    assert any("form" in reason for reason in found.left_out.reasons)


def test_a_benchmark_without_the_truth_is_refused_with_its_first_reason(
    read: Read, scenes: Path
) -> None:
    rated = {"benchmark": str(scenes), "protocol": "realism"}
    with pytest.raises(UnreadableSourceError, match="no rating"):
        read(recipe(scenes, data=[rated]))


def test_one_scene_alone_cannot_be_parted(read: Read, tmp_path: Path) -> None:
    entries = [(real(f"r{n}", group="street"), clip(n)) for n in range(3)]
    root = write_set(tmp_path / "set", entries)
    with pytest.raises(InvalidSettingError, match=r"'street'.*holdout\.share=0"):
        read(recipe(root))
    nothing_held = {"share": 0, "near_duplicates": False}
    assert len(read(recipe(root, holdout=nothing_held)).train) == 3


def test_a_split_can_be_held_out_and_what_it_shares_with_training_is_left_out(
    read: Read, tmp_path: Path
) -> None:
    entries = [
        (real("a", group="1", split="train"), clip(1)),
        (real("b", group="2", split="train"), clip(2)),
        (real("c", group="2", split="val"), clip(3)),
        (real("d", group="4", split="val"), clip(4)),
        (real("e", group="5", split="test"), clip(5)),
    ]
    root = write_set(tmp_path / "set", entries)
    held = {"split": "val", "near_duplicates": False}
    assert names(read(recipe(root, holdout=held)).train) == {"a", "b"}
    whole = recipe(root).data[0].model_dump() | {"split": None}
    found = read(recipe(root, holdout=held, data=[whole]))
    assert "e" in names(found.train)  # every other split is learned from where none is named
    assert names(found.held_out) == {"d"}
    assert [r.name for r in found.left_out.first] == ["c"]
    with pytest.raises(UnknownNameError, match="valid"):
        read(recipe(root, holdout={"split": "valid"}))


def unseen(root: Path, **told: Any) -> dict[str, Any]:
    return {"share": 0, "near_duplicates": False, "benchmarks": [{"benchmark": str(root)} | told]}


def test_the_same_bytes_in_a_benchmark_to_be_scored_on_are_refused_with_names(
    read: Read, scenes: Path, tmp_path: Path
) -> None:
    test = write_set(tmp_path / "test", [(real("copy"), clip(3)), (real("own"), clip(70))])
    with pytest.raises(InvalidSettingError, match=r"r3 and copy .*same bytes.*--accept-leak"):
        read(recipe(scenes, holdout=unseen(test)))
    accepted = read(recipe(scenes, holdout=unseen(test)), accept_leak=True)
    assert [leak.unseen for leak in accepted.leaks] == ["copy"]


def test_the_same_source_in_a_benchmark_to_be_scored_on_is_refused(
    read: Read, scenes: Path, tmp_path: Path
) -> None:
    test = write_set(tmp_path / "test", [(real("other", group="scene-2"), clip(71))])
    with pytest.raises(InvalidSettingError, match="same source"):
        read(recipe(scenes, holdout=unseen(test)))


def test_a_held_out_clip_may_share_its_scene_with_a_benchmark(
    read: Read, scenes: Path, tmp_path: Path
) -> None:
    held = read(recipe(scenes)).held_out[0]
    test = write_set(tmp_path / "test", [(real("other", group=held.source), clip(72))])
    holdout = unseen(test) | {"share": 0.25}
    assert read(recipe(scenes, holdout=holdout)).leaks == ()


def test_near_duplicates_stay_on_one_side_and_do_not_leak(read: Read, tmp_path: Path) -> None:
    pytest.importorskip("pdqhash")
    twins = [(real(f"a{n}", group=f"a{n}"), clip(n)) for n in range(4)]
    twins += [(real(f"b{n}", group=f"b{n}"), clip(n, crf=30)) for n in range(4)]
    root = write_set(tmp_path / "set", twins)
    found = read(recipe(root, holdout={"share": 0.5}))
    assert {n[1:] for n in names(found.train)}.isdisjoint({n[1:] for n in names(found.held_out)})
    test = write_set(tmp_path / "test", [(real("again"), clip(2, crf=35))])
    with pytest.raises(InvalidSettingError, match="near-duplicate"):
        read(recipe(root, holdout={"share": 0, "benchmarks": str(test)}))


def test_a_clip_and_its_injected_twin_never_straddle(read: Read, tmp_path: Path) -> None:
    own = write_set(tmp_path / "own", [(real(f"s{n}"), clip(n)) for n in range(6)])
    # As `unreel curate` freezes them: the twin names the clip that it was made from.
    twins = [(fake(f"s{n}+blur", group=f"s{n}"), clip(200 + n)) for n in range(6)]
    made = write_set(tmp_path / "made", twins)
    data = [recipe(root).data[0].model_dump() for root in (own, made)]
    for seed in range(3):
        found = read(recipe(own, data=data, seed=seed))
        sides = [{e.name.partition("+")[0] for e in side} for side in (found.train, found.held_out)]
        assert sides[0].isdisjoint(sides[1])


def test_pairs_and_ratings_give_examples_too(read: Read, tmp_path: Path) -> None:
    entries = []
    for n in range(3):
        rating = Rating(score=n + 1, problem="It floats.", adherence="Noticeable errors.")
        entries.append((real(f"r{n}", group=f"g{n}", rating=rating), clip(n)))
        entries.append((fake(f"f{n}", group=f"g{n}", rating=rating), clip(50 + n)))
    root = write_set(tmp_path / "set", entries)
    data = [
        {"benchmark": str(root), "protocol": "preference"},
        {"benchmark": str(root), "protocol": "realism", "weight": 0.5},
    ]
    found = read(recipe(root, data=data))
    every = (*found.train, *found.held_out)
    assert sorted(len(e.clips) for e in every) == [1] * 6 + [2] * 3
    assert found.weights == (1.0, 0.5)
    groups = [{c.id for e in side for c in e.clips} for side in (found.train, found.held_out)]
    assert groups[0].isdisjoint(groups[1])


def test_a_second_reading_opens_no_clip(read: Read, scenes: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(scenes, copied)
    first = read(recipe(copied))
    steps: list[str] = []
    again = read(recipe(copied), on_step=lambda part, _progress: steps.append(part))
    assert steps == []
    assert again.digest == first.digest


def test_changed_truth_bytes_or_weights_are_another_training(read: Read, scenes: Path) -> None:
    first = read(recipe(scenes)).digest
    heavier = recipe(scenes).data[0].model_dump() | {"weight": 2.0}
    assert read(recipe(scenes, data=[heavier])).digest != first
    assert read(recipe(scenes, seed=3)).digest != first
