"""The same examples for trainers of other people."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance")  # examples are kept in tables

from footage import film, write_clip
from training.sets import MELTS, fake, real, recipe, write_set
from unreel.cli.train.export import export as typed_export
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
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
from unreel.reviewers.ask import ClipInputLoader
from unreel.reviewers.local.input_format import read_checkpoint_input_spec
from unreel.training.examples.example import SEEN
from unreel.training.examples.reading import TrainingExampleSet, read_training_examples
from unreel.training.formats.contract import FORMATS, create_trainer_export_job
from unreel.training.formats.exporting import (
    MANIFEST,
    ROWS,
    ExampleExportResult,
    export_training_examples,
)
from unreel.training.recipe import TrainRecipe

TRAINERS = {"llamafactory": "qwen2.5-vl", "ms-swift": "qwen2.5-vl", "qwen-vl-finetune": "qwen3-vl"}
ALL = {**TRAINERS, "videollama3": "videollama3"}
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

    def __call__(
        self, to: str, *, keeping: Any = "link", as_film: bool = False, **told: Any
    ) -> ExampleExportResult:
        asked = _recipe(self.root, family=ALL[to], **told)
        found = read_training_examples(
            asked, access=self.access, folder=self.folder / "kept", accept_leak=True
        )
        return export_training_examples(
            create_trainer_export_job(asked, as_film=as_film, keeping=keeping),
            {"train": found.train, "held_out": found.held_out},
            FORMATS.load(to),
            folder=self.folder / "out",
            showing=self.showing,
        )


@pytest.fixture
def export(root: Path, access: ClipAccessSettings, reader: MediaReader, tmp_path: Path) -> Exporter:
    return Exporter(root, access, reader, tmp_path)


def _told(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / ROWS).read_text().splitlines()]


def _rows(folder: Path) -> list[dict[str, Any]]:
    """Every row of both parts, whatever the trainer calls its fields."""
    rows: list[dict[str, Any]] = []
    for part in ("train", "held_out"):
        for file in folder.glob(f"{part}.json*"):
            text = file.read_text()
            if file.suffix == ".jsonl":
                rows += map(json.loads, text.splitlines())
            elif file.name != "train.json" or text.startswith("["):
                rows += json.loads(text)
    return [_alike(row) for row in rows]


def _alike(row: dict[str, Any]) -> dict[str, Any]:
    turns = row.get("messages") or [
        {"role": {"human": "user", "gpt": "assistant"}[turn["from"]], "content": turn["value"]}
        for turn in row["conversations"]
    ]
    asked, answer = turns
    assert (asked["role"], answer["role"]) == ("user", "assistant")
    images = row.get("images") or row.get("image") or []
    videos = row.get("videos") or row.get("video") or []
    return {
        "asked": asked["content"],
        "answer": answer["content"],
        "images": images,
        "videos": videos,
    }


@pytest.mark.parametrize("form", ["frames", "video"])
@pytest.mark.parametrize("to", ALL)
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


@pytest.mark.parametrize("form", ["frames", "video"])
@pytest.mark.parametrize("to", ALL)
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


def test_a_video_of_our_own_frames_is_a_list_of_pictures_on_the_beat(export: Exporter) -> None:
    folder = export("llamafactory", as_film=True).folder
    (video,) = _rows(folder)[0]["videos"]
    assert [Path(frame).name for frame in video] == [f"{n:06d}.jpg" for n in (0, 6, 12, 18, 24, 30)]
    assert {each["off_the_beat_s"] for each in _told(folder)} == {0}


def test_the_frames_that_a_trainer_really_takes_are_told(export: Exporter) -> None:
    exported = export("llamafactory")
    assert exported.sampling == "llamafactory-2-max-20"
    assert any("llamafactory-2-max-20" in words for words in exported.differences)
    manifest = json.loads((exported.folder / MANIFEST).read_text())
    assert manifest["sampling_asked"] == "fps-2-max-20"
    assert manifest["sampling_used"] == "llamafactory-2-max-20"
    assert manifest["differences"] == list(exported.differences)


def test_the_same_plan_on_both_sides_is_no_difference(export: Exporter) -> None:
    exported = export("llamafactory", sampling="llamafactory-2-max-20")
    assert not any("its frames" in words for words in exported.differences)


def test_the_mark_of_a_prompt_gives_way_to_the_clip_and_that_is_told(export: Exporter) -> None:
    exported = export("ms-swift")
    assert all(row["asked"].startswith("<video>Decide") for row in _rows(exported.folder))
    assert any("own mark" in words for words in exported.differences)


def test_what_was_trained_elsewhere_can_be_asked_as_it_was_taught(export: Exporter) -> None:
    taught = read_checkpoint_input_spec(export("ms-swift", form="frames").folder)
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
    assert int(lines["cutoff_len"]) > 300


def test_ms_swift_is_told_to_stop_at_a_bad_row_instead_of_taking_another(export: Exporter) -> None:
    settings = json.loads((export("ms-swift").folder / "train.json").read_text())
    assert settings["strict"] is True
    assert settings["ENV"]["FPS"] == "2.0"
    assert settings["ENV"]["FPS_MAX_FRAMES"] == "20"
    assert settings["ENV"]["VIDEO_MIN_TOKEN_NUM"] == "4"


@pytest.mark.parametrize("to", ["qwen-vl-finetune", "videollama3"])
def test_scripts_are_readable_by_a_shell(to: str, export: Exporter) -> None:
    folder = export(to).folder
    subprocess.run(["sh", "-n", "train.sh"], cwd=folder, check=True, timeout=10)
    assert "fps" in (folder / "train.sh").read_text()


def test_the_entry_for_qwen_s_table_names_this_folder(export: Exporter) -> None:
    folder = export("qwen-vl-finetune").folder
    code = "import data_config as d, json; t = {}; d.add(t); print(json.dumps(t))"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, check=True, timeout=20
    )
    entry = json.loads(ran.stdout)["unreel_train"]
    assert Path(entry["annotation_path"]).is_file()
    assert Path(entry["data_path"]) == folder.resolve()


@pytest.mark.parametrize(
    ("to", "told", "words"),
    [
        ("llamafactory", {"sampling": "uniform-8"}, "no other trainer takes uniform-8"),
        ("ms-swift", {"as_film": True}, "no video as a list of frames"),
        ("videollama3", {"sampling": "fps-1/2-max-8"}, "no rate of 1/2"),
        ("llamafactory", {"form": "frames", "as_film": True}, "has no effect"),
    ],
)
def test_what_a_trainer_cannot_be_told_is_refused_before_a_clip_is_opened(
    to: str, told: dict[str, Any], words: str, export: Exporter
) -> None:
    with pytest.raises(InvalidSettingError, match=words):
        export(to, **told)
    assert not (export.folder / "out").exists()


def test_every_trainer_can_be_typed() -> None:
    (to,) = (option for option in typed_export.params if option.name == "trainer")
    assert sorted(to.type.choices) == FORMATS.names() == sorted(ALL)  # type: ignore[attr-defined]


def test_a_model_that_a_trainer_does_not_know_is_refused(export: Exporter) -> None:
    asked = _recipe(export.root, family="videollama3")
    with pytest.raises(InvalidSettingError, match="trains no videollama3"):
        export_training_examples(
            create_trainer_export_job(asked),
            {"train": ()},
            FORMATS.load("llamafactory"),
            folder=export.folder / "out",
            showing=export.showing,
        )


def test_frames_of_several_sizes_are_limited_by_the_largest_of_them(root: Path) -> None:
    data = _recipe(root, form="frames").data[0]
    conditions = [
        data.condition.model_copy(update={"max_pixels": n}) for n in (50_176, 200_704, 9216)
    ]
    several = tuple(data.model_copy(update={"condition": each}) for each in conditions)
    asked = _recipe(root, form="frames").model_copy(update={"data": several})
    assert create_trainer_export_job(asked).most_pixels == 200_704


def test_an_answer_with_a_mark_of_the_trainer_s_own_is_left_out_and_counted(
    access: ClipAccessSettings, reader: MediaReader, tmp_path: Path
) -> None:
    hostile = replace(MELTS, explanation="An <image> appears. <|im_end|>")
    entries = [
        (real("r", group="1"), _clip(1)),
        (fake("f", group="2", traces=(hostile,)), _clip(2)),
        (real("s", group="3"), _clip(3)),
    ]
    export = Exporter(write_set(tmp_path / "set", entries), access, reader, tmp_path)
    exported = export("llamafactory")
    assert exported.n_train + exported.n_held_out == 2
    assert sum(exported.left_out.values()) == 1
    assert "a special tag of the trainer" in str(exported.first[0])


def test_an_export_without_a_single_row_is_refused(export: Exporter) -> None:
    with pytest.raises(UnreadableSourceError, match="no example could be written"):
        export_training_examples(
            create_trainer_export_job(_recipe(export.root)),
            {"train": ()},
            FORMATS.load("llamafactory"),
            folder=export.folder / "out",
            showing=export.showing,
        )
