"""The same examples for trainers of other people."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance")  # examples are kept in tables

from footage import film, write_clip
from training.sets import MELTS, fake, real, recipe, write_set
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.settings import read_environment_settings
from unreel.core.verdict import Unparsed
from unreel.engine.storage_access import (
    ClipAccessSettings,
    build_clip_access_settings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.media.access import open_media_reader
from unreel.media.reader import MediaReader
from unreel.protocols.answer_text import parse_answer_text
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.clip_inputs import ClipInputLoader
from unreel.reviewers.local.checkpoint import read_checkpoint_input_spec
from unreel.training.examples.example import SEEN
from unreel.training.examples.reading import TrainingExampleSet, read_training_examples
from unreel.training.export import (
    FORMATS,
    MANIFEST,
    ROWS,
    ExampleExportResult,
    export_training_examples,
)
from unreel.training.recipe import TrainRecipe

FORMS = [("chat", "frames"), ("llamafactory", "frames"), ("llamafactory", "video")]
WIDTH, HEIGHT = 160, 96


@pytest.fixture(scope="module")
def access() -> ClipAccessSettings:
    return build_clip_access_settings(read_environment_settings(), trusted=True)


@pytest.fixture(scope="module")
def reader(access: ClipAccessSettings) -> Iterator[MediaReader]:
    with open_media_reader(access.settings, trusted=True) as opened:
        yield opened


def _clip(seed: int) -> bytes:
    return write_clip(film(seed, n_frames=36, width=WIDTH, height=HEIGHT), rate=12)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = [
        (real("r", group="1"), _clip(1)),
        (fake("f", group="2", traces=(MELTS, MELTS)), _clip(2)),
        (fake("g", group="3"), _clip(3)),
        (real("s", group="4"), _clip(4)),
    ]
    return write_set(tmp_path_factory.mktemp("set"), entries)


@pytest.fixture(scope="module")
def examples(
    root: Path, access: ClipAccessSettings, tmp_path_factory: pytest.TempPathFactory
) -> TrainingExampleSet:
    return read_training_examples(
        _recipe(root), access=access, folder=tmp_path_factory.mktemp("kept"), accept_leak=True
    )


def _recipe(
    root: Path, *, sampling: str = "fps-2-max-20", form: str = "video", family: str = "qwen2.5-vl"
) -> TrainRecipe:
    data = {
        "benchmark": str(root),
        "split": None,
        "protocol": "trace",
        "condition": {"sampling": sampling, "prompt": "fine-tuning"},
    }
    model = {"name": "somebody/model-7B", "family": family, "tune": "full"}
    return recipe(None, data=[data], input=form, model=model)


class Exporter:
    def __init__(
        self, root: Path, access: ClipAccessSettings, reader: MediaReader, folder: Path
    ) -> None:
        self.root, self.access, self.folder = root, access, folder
        self.showing = ClipInputLoader(
            reader=reader,
            open_file=partial(provide_local_clip_file, access=access),
            find_change=find_clip_change,
        )

    def __call__(self, to: str, *, keeping: Any = "link", **told: Any) -> ExampleExportResult:
        asked = _recipe(self.root, **told)
        found = read_training_examples(
            asked, access=self.access, folder=self.folder / "kept", accept_leak=True
        )
        return export_training_examples(
            FORMATS[to](asked),
            {"train": found.train, "held_out": found.held_out},
            folder=self.folder / "out",
            loader=self.showing,
            keeping=keeping,
        )


@pytest.fixture
def export(root: Path, access: ClipAccessSettings, reader: MediaReader, tmp_path: Path) -> Exporter:
    return Exporter(root, access, reader, tmp_path)


def _told(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / ROWS).read_text().splitlines()]


def _rows(folder: Path) -> list[dict[str, Any]]:
    """Every row of both parts."""
    rows: list[dict[str, Any]] = []
    for part in ("train", "held_out"):
        for file in folder.glob(f"{part}.json*"):
            text = file.read_text()
            rows += (
                map(json.loads, text.splitlines()) if file.suffix == ".jsonl" else json.loads(text)
            )
    return [_alike(row) for row in rows]


def _alike(row: dict[str, Any]) -> dict[str, Any]:
    asked, answer = row["messages"]
    assert (asked["role"], answer["role"]) == ("user", "assistant")
    return {
        "asked": asked["content"],
        "answer": answer["content"],
        "images": row.get("images", []),
        "videos": row.get("videos", []),
    }


@pytest.mark.parametrize(("to", "form"), FORMS)
def test_every_answer_written_reads_back_as_the_truth(
    to: str, form: str, export: Exporter, examples: TrainingExampleSet
) -> None:
    exported = export(to, form=form)
    told, rows = _told(exported.folder), _rows(exported.folder)
    truths = {example.key: example for example in (*examples.train, *examples.held_out)}
    assert len(told) == len(rows) == exported.n_train + exported.n_held_out == 5
    assert sorted(row["answer"] for row in rows) == sorted(each["answer"] for each in told)
    instrument = get_protocol("trace")
    by_name = {example.name: example for example in truths.values()}
    for each in told:
        example = by_name[each["name"]]
        verdict: Any = parse_answer_text(
            each["answer"],
            instrument,
            prompt=each["prompt"],
            mode="strict",
            box_space=each["box_space"],
            size=example.clips[0].size,
        )
        assert verdict.label is example.truth.label
        if verdict.label is Label.GENERATED:
            assert not isinstance(verdict.box, Unparsed)
            assert verdict.start_us == pytest.approx(MELTS.span.start_us, abs=10_000)
            near = MELTS.track[0].box
            assert verdict.box.x0 == pytest.approx(near.x0, abs=0.01)
            assert verdict.box.y1 == pytest.approx(near.y1, abs=0.01)


@pytest.mark.parametrize(("to", "form"), FORMS)
def test_there_is_one_mark_for_each_of_the_media_and_every_path_is_there(
    to: str, form: str, export: Exporter
) -> None:
    folder = export(to, form=form).folder
    for row in _rows(folder):
        assert row["asked"].count("<image>") == len(row["images"])
        assert row["asked"].count("<video>") == len(row["videos"])
        assert bool(row["images"]) is (form == "frames")
        for place in (*row["images"], *row["videos"]):
            assert not Path(place).is_absolute()
            assert (folder / place).is_file()


def test_frames_stand_behind_their_instants_and_are_the_bytes_that_are_asked_about(
    export: Exporter, examples: TrainingExampleSet
) -> None:
    folder = export("llamafactory", form="frames").folder
    (row, *_) = _rows(folder)
    assert row["asked"].startswith("0.00 s<image>0.50 s<image>1.00 s<image>")
    told = _told(folder)[0]
    assert told["instants_s"] == [0, 0.5, 1.0, 1.5, 2.0, 2.5]
    (example,) = (e for e in (*examples.train, *examples.held_out) if e.key == told["key"])
    shown = export.showing.show(example.clips, example.question.condition, SEEN)
    assert not isinstance(shown, Failure)
    written = [(folder / place).read_bytes() for place in row["images"]]
    assert written == [frame.jpeg for frame in shown[0].frames]


@pytest.mark.parametrize("keeping", ["link", "copy"])
def test_a_clip_goes_as_the_very_bytes_that_it_has(
    keeping: str, export: Exporter, root: Path
) -> None:
    folder = export("llamafactory", keeping=keeping).folder
    media = sorted(path.read_bytes() for path in (folder / "media").iterdir())
    assert media == sorted(path.read_bytes() for path in root.glob("*.mp4"))


def test_boxes_are_in_the_space_that_the_trainer_s_resize_gives(export: Exporter) -> None:
    spaces = {each["box_space"] for each in _told(export("llamafactory").folder)}
    assert spaces == {"model-input 168x84"}


def test_the_frames_that_a_trainer_really_takes_are_told(export: Exporter) -> None:
    exported = export("llamafactory")
    assert exported.sampling == "llamafactory-2-max-20"
    assert any("llamafactory-2-max-20" in words for words in exported.differences)
    manifest = json.loads((exported.folder / MANIFEST).read_text())
    assert manifest["sampling_asked"] == "fps-2-max-20"
    assert manifest["sampling_used"] == "llamafactory-2-max-20"
    assert manifest["differences"] == list(exported.differences)


def test_what_was_trained_elsewhere_can_be_asked_as_it_was_taught(export: Exporter) -> None:
    taught = read_checkpoint_input_spec(export("chat", form="frames").folder)
    assert taught is not None
    assert (taught.family, taught.input, taught.box_space) == (
        "qwen2.5-vl",
        "frames",
        "model-input",
    )
    condition = taught.condition("trace")
    assert condition is not None
    assert condition.sampling == "fps-2-max-20"


def test_llama_factory_is_told_the_names_and_sizes(export: Exporter) -> None:
    folder = export("llamafactory").folder
    info = json.loads((folder / "dataset_info.json").read_text())
    for entry in info.values():
        assert (folder / entry["file_name"]).is_file()
        assert entry["columns"] == {"messages": "messages", "videos": "videos"}
    lines = dict(line.split(": ", 1) for line in (folder / "train.yaml").read_text().splitlines())
    assert json.loads(lines["dataset"]) in info
    assert lines["learning_rate"] == "1.0e-05"
    assert (lines["video_fps"], lines["video_maxlen"]) == ("2.0", "20")
    assert lines["trust_remote_code"] == "false"
    assert int(lines["cutoff_len"]) > 128_000


@pytest.mark.parametrize(
    ("to", "told", "words"),
    [
        ("llamafactory", {"sampling": "uniform-8"}, "no other trainer takes uniform-8"),
        ("llamafactory", {"family": "videollama3"}, "trains no videollama3"),
        ("chat", {"form": "video"}, "no rule for the frames of a video"),
    ],
)
def test_what_a_trainer_cannot_be_told_is_refused_before_a_clip_is_opened(
    to: str, told: dict[str, Any], words: str, export: Exporter
) -> None:
    with pytest.raises(InvalidSettingError, match=words):
        export(to, **told)
    assert not (export.folder / "out").exists()
