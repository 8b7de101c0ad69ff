import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from unreel.benchmarks.entry import Entry, Row
from unreel.benchmarks.export.exported_question import (
    BenchmarkExportRecipe,
    flatten_scorecard_metrics,
    list_exported_task_metrics,
    load_export_recipe,
    parse_exported_question,
    read_exported_rows,
    score_exported_replies,
)
from unreel.benchmarks.export.lmms_eval import MODULE, export_lmms_eval
from unreel.benchmarks.export.lmms_task import LmmsTask
from unreel.benchmarks.loader import Benchmark
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.media.reader import MediaReader
from unreel.protocols.protocol import get_protocol

REALITY = BenchmarkExportRecipe(name="real-or-not", protocol="reality", prompt="direct")
TRACE = BenchmarkExportRecipe(
    name="traces", protocol="trace", box_space="pixel", sampling="uniform-3"
)
REPLIES = [
    "<answer>1</answer>",
    "I think it is real.",
    "<answer>0</answer>",
    "<answer>1</answer>",
    "",
]

# Loads the module as lmms-eval does: from its file, anew for every function.
RUN = """
import importlib.util, json, sys
def load(name):
    spec = importlib.util.spec_from_file_location("unreel_task", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)
docs, replies, functions = json.load(sys.stdin)
results = [load("process_results")(doc, [reply]) for doc, reply in zip(docs, replies)]
figures = {m: load(f)([result[m] for result in results]) for m, f in functions.items()}
heavy = {"av", "torch", "lmms_eval"} & set(sys.modules)
print(json.dumps([load("doc_to_text")(docs[0]), len(load("doc_to_visual")(docs[0])), figures, sorted(heavy)]))
"""


def config_of(folder: Path, name: str) -> dict[str, Any]:
    """The YAML, which is JSON once its tags are taken for words."""
    text = (folder / f"{name}.yaml").read_text(encoding="utf-8").replace("!function ", "")
    config: dict[str, Any] = json.loads(text)
    return config


def run_module(folder: Path, config: dict[str, Any], replies: list[str]) -> list[Any]:
    functions = {
        metric["metric"]: metric["aggregation"].removeprefix(f"{MODULE}.")
        for metric in config["metric_list"]
    }
    given = json.dumps([list(read_exported_rows(folder)), replies, functions])
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder / f"{MODULE}.py")],
        input=given,
        check=True,
        capture_output=True,
        text=True,
    )
    said: list[Any] = json.loads(done.stdout)
    return said


def test_the_yaml_names_data_and_functions_that_are_there(
    benchmark_: Benchmark, reader: MediaReader, tmp_path: Path
) -> None:
    export_lmms_eval(benchmark_, REALITY, folder=tmp_path, reader=reader)
    config = config_of(tmp_path, "real-or-not")
    assert config["task"] == "real-or-not"
    assert config["dataset_path"] == "json"
    data = Path(config["dataset_kwargs"]["data_files"][config["test_split"]])
    rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
    assert [row["answer"] for row in rows] == ["1", "1", "0", "0", "0"]
    assert config["doc_to_target"] in rows[0]
    assert config["generation_kwargs"]["until"] == []
    written = (tmp_path / f"{MODULE}.py").read_text(encoding="utf-8")
    hooks = [config[key] for key in ("doc_to_visual", "doc_to_text", "process_results")]
    hooks += [metric["aggregation"] for metric in config["metric_list"]]
    assert all(f"def {hook.removeprefix(MODULE + '.')}(" in written for hook in hooks)


def test_the_module_alone_scores_as_our_scorer_does_and_loads_nothing_heavy(
    benchmark_: Benchmark, reader: MediaReader, tmp_path: Path
) -> None:
    export_lmms_eval(benchmark_, REALITY, folder=tmp_path, reader=reader)
    config = config_of(tmp_path, "real-or-not")
    text, n_visuals, figures, heavy = run_module(tmp_path, config, REPLIES)
    items = [parse_exported_question(row) for row in read_exported_rows(tmp_path)]
    ours = flatten_scorecard_metrics(
        score_exported_replies(REALITY, zip(items, REPLIES, strict=True))
    )
    assert figures == {name: ours.get(name) for name, _ in list_exported_task_metrics("reality")}
    assert figures["real-accuracy"] == 100
    assert (figures["questions"], figures["answered"]) == (5, 4)
    assert text == get_protocol("reality").prompt("direct").text.removesuffix("<video >")
    assert n_visuals == 8
    assert heavy == []


def test_requests_that_all_failed_give_no_figure(
    benchmark_: Benchmark, reader: MediaReader, tmp_path: Path
) -> None:
    export_lmms_eval(benchmark_, TRACE, folder=tmp_path, reader=reader)
    lost = ["[LMMS_EVAL_REQUEST_FAILED after 3 retries] Error code: 429"] * 5
    *_, figures, _ = run_module(tmp_path, config_of(tmp_path, "traces"), lost)
    assert figures.pop("questions") == 5
    assert figures.pop("answered") == 0
    assert set(figures.values()) == {None}


def test_frames_are_shown_with_their_instants_where_a_time_is_asked_for(
    benchmark_: Benchmark, reader: MediaReader, tmp_path: Path
) -> None:
    export_lmms_eval(benchmark_, TRACE, folder=tmp_path, reader=reader)
    doc = next(iter(read_exported_rows(tmp_path)))
    task = LmmsTask(tmp_path)
    (turn,) = task.messages(doc)
    kinds = [part["type"] for part in turn["content"]]
    assert kinds == ["text", "image"] * 3 + ["text"]
    assert [part["text"] for part in turn["content"][:-1:2]] == ["0.17 s", "0.50 s", "0.83 s"]
    assert turn["content"][-1]["text"] == get_protocol("trace").prompt("paper").text
    bare, folder = replace(TRACE, marks="off"), tmp_path / "bare"
    export_lmms_eval(benchmark_, bare, folder=folder, reader=reader)
    (turn,) = LmmsTask(folder).messages(next(iter(read_exported_rows(folder))))
    assert [part["type"] for part in turn["content"]] == ["image"] * 3 + ["text"]
    pictures = task.visuals(doc)
    assert all(isinstance(p, Image.Image) and p.size == (96, 64) for p in pictures)


def test_frames_have_no_more_pixels_than_the_export_caps(
    benchmark_: Benchmark, reader: MediaReader, tmp_path: Path
) -> None:
    capped = replace(TRACE, max_pixels=1_000)
    export_lmms_eval(benchmark_, capped, folder=tmp_path, reader=reader)
    pictures = LmmsTask(tmp_path).visuals(next(iter(read_exported_rows(tmp_path))))
    assert {picture.size for picture in pictures} == {(38, 25)}
    assert load_export_recipe(tmp_path)[0] == capped
    with pytest.raises(InvalidSettingError, match="256 or more"):
        replace(TRACE, max_pixels=255)
    with pytest.raises(InvalidSettingError, match="whole file"):
        replace(TRACE, max_pixels=1_000, sampling=None)


def test_the_clips_of_a_pair_are_numbered_and_a_frame_is_written_once(
    benchmark_: Benchmark, reader: MediaReader, tmp_path: Path
) -> None:
    recipe = BenchmarkExportRecipe(name="pairs", protocol="preference", sampling="uniform-2")
    export_lmms_eval(benchmark_, recipe, folder=tmp_path, reader=reader)
    (turn,) = LmmsTask(tmp_path).messages(next(iter(read_exported_rows(tmp_path))))
    shown = [part.get("text", part["type"]) for part in turn["content"][:-1]]
    assert shown == ["Video 1:", "image", "image", "Video 2:", "image", "image"]
    assert len(list((tmp_path / "frames").rglob("*.jpg"))) == 2 * 5


def test_without_a_sampling_the_files_themselves_are_shown(
    benchmark_: Benchmark, reader: MediaReader, tmp_path: Path, root: Path
) -> None:
    export_lmms_eval(benchmark_, replace(REALITY, sampling=None), folder=tmp_path, reader=reader)
    task = LmmsTask(tmp_path)
    doc = next(iter(read_exported_rows(tmp_path)))
    assert task.visuals(doc) == [str(root / "real/a.mp4")]
    kinds = [part["type"] for part in task.messages(doc)[0]["content"]]
    assert kinds == ["text", "video"]  # the printed text has the clip at its end
    assert not (tmp_path / "frames").exists()


def test_a_clip_that_cannot_be_shown_is_refused_and_the_others_are_asked_about(
    benchmark_: Benchmark, rows: list[Row], reader: MediaReader, tmp_path: Path
) -> None:
    assert isinstance(rows[0], Entry)
    rows[0] = replace(rows[0], location="broken.mp4")
    (benchmark_.root / "broken.mp4").write_bytes(b"no video at all")
    exported = export_lmms_eval(benchmark_, REALITY, folder=tmp_path, reader=reader)
    assert (exported.n_questions, exported.n_rejected) == (4, 1)
    assert [row.name for row in exported.rejected] == ["real/a"]
    assert [row["index"] for row in read_exported_rows(tmp_path)] == [0, 1, 2, 3]


def test_an_export_without_any_question_is_an_error(
    benchmark_: Benchmark, reader: MediaReader, tmp_path: Path
) -> None:
    recipe = replace(REALITY, split="none")
    with pytest.raises(UnreadableSourceError, match="split"):
        export_lmms_eval(benchmark_, recipe, folder=tmp_path, reader=reader)
