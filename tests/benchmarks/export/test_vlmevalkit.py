import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from unreel.benchmarks.export.exported_question import (
    BenchmarkExportRecipe,
    flatten_scorecard_metrics,
    parse_exported_question,
    read_exported_rows,
    score_exported_replies,
)
from unreel.benchmarks.export.vlm_dataset import VlmDataset
from unreel.benchmarks.export.vlmevalkit import MODULE, export_vlmevalkit
from unreel.benchmarks.loader import Benchmark
from unreel.core.errors import InvalidSettingError
from unreel.media.reader import MediaReader
from unreel.protocols.protocol import get_protocol

REALISM = BenchmarkExportRecipe(name="Rated", protocol="realism")
REPLIES = ["<answer>1</answer>", "<answer>2</answer>", "three", "<answer>5</answer>", None]

# What VLMEvalKit's VideoBaseDataset and registry do, as far as a data set meets them.
FAKE_VLMEVAL = """
import csv, json, types, sys

class Rows(list):
    iloc = property(lambda self: self)
    def to_dict(self, how):
        assert how == "records"
        return list(self)

def load(path):
    if path.endswith(".tsv"):
        with open(path, newline="") as file:
            return Rows(csv.DictReader(file, delimiter="\\t"))
    with open(path) as file:
        return Rows(json.load(file))

class VideoBaseDataset:
    MODALITY = "VIDEO"
    def __init__(self, dataset="MMBench-Video", pack=False, nframe=0, fps=-1):
        self.dataset_name, self.pack, self.nframe, self.fps = dataset, pack, nframe, fps
        found = self.prepare_dataset(dataset)
        self.data_root, self.data = found["root"], load(found["data_file"])
        assert {"index", "question", "video"} <= set(self.data[0])

def module(name, **names):
    made = sys.modules[name] = types.ModuleType(name)
    made.__dict__.update(names)
    return made

config = module("vlmeval.dataset.video_dataset_config", supported_video_datasets={})
base = module("vlmeval.dataset.video_base", VideoBaseDataset=VideoBaseDataset)
module("vlmeval.smp", load=load)
dataset = module("vlmeval.dataset", video_dataset_config=config, video_base=base)
module("vlmeval", dataset=dataset)
"""
RUN = """
import importlib
sys.path.insert(0, sys.argv[1])
exported = importlib.import_module(sys.argv[3])
exported.register()
data = config.supported_video_datasets["Rated"]()
print(json.dumps({
    "known": data.supported_datasets(), "nframe": data.nframe, "root": data.data_root,
    "frames": data.build_prompt(1, video_llm=False),
    "whole": data.build_prompt(data.data[1], video_llm=True),
    "figures": data.evaluate(sys.argv[2], model="judge", nproc=4),
    "heavy": sorted({"av", "torch"} & set(sys.modules)),
}))
"""


@pytest.fixture
def exported(benchmark_: Benchmark, reader: MediaReader, tmp_path: Path) -> Path:
    export_vlmevalkit(benchmark_, REALISM, folder=tmp_path, reader=reader)
    return tmp_path


def run_class(folder: Path, predictions: list[dict[str, Any]]) -> dict[str, Any]:
    path = folder / "model_Rated.json"
    path.write_text(json.dumps(predictions), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", FAKE_VLMEVAL + RUN, str(folder), str(path), MODULE],
        check=True,
        capture_output=True,
        text=True,
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_the_table_has_the_columns_that_video_data_sets_have(exported: Path) -> None:
    with (exported / "Rated.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert list(rows[0]) == ["index", "video", "video_path", "question", "answer"]
    assert [row["index"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert (rows[2]["video"], rows[2]["video_path"]) == ("Veo/a", "Veo/a.mp4")
    assert {row["question"] for row in rows} == {get_protocol("realism").prompt("paper").text}
    assert [row["answer"] for row in rows] == ["1", "2", "3", "4", "5"]


def test_the_class_asks_and_scores_as_we_do(exported: Path, root: Path) -> None:
    predictions = [{"index": i, "prediction": text} for i, text in enumerate(REPLIES)]
    said = run_class(exported, predictions)
    items = [parse_exported_question(row) for row in read_exported_rows(exported)]
    replies = [(item, text or "") for item, text in zip(items, REPLIES, strict=True)]
    assert said["figures"] == flatten_scorecard_metrics(score_exported_replies(REALISM, replies))
    assert (said["figures"]["questions"], said["figures"]["answered"]) == (5, 4)
    assert said["known"] == ["Rated"]
    assert said["nframe"] == 8
    assert said["root"] == str(root.resolve())
    prompt = {"type": "text", "value": get_protocol("realism").prompt("paper").text}
    assert said["whole"] == [{"type": "video", "value": str(root.resolve() / "real/b.mp4")}, prompt]
    assert [part["type"] for part in said["frames"]] == ["image"] * 8 + ["text"]
    assert all(Path(part["value"]).is_file() for part in said["frames"][:-1])
    assert said["heavy"] == []
    written = json.loads((exported / "model_Rated_unreel.json").read_text(encoding="utf-8"))
    assert written == said["figures"]


def test_rows_that_the_tool_lost_or_could_not_ask_are_failures(exported: Path) -> None:
    lost = [{"index": 0, "prediction": "Failed to obtain answer via API."}, {"index": 1}]
    figures = VlmDataset(exported).evaluate(lost, eval_file=exported / "x.xlsx")
    assert figures == {
        "questions": 5,
        "answered": 0,
        "failed: empty-reply": 4,
        "failed: server-error": 1,
    }


def test_both_clips_of_a_pair_are_named_and_numbered(
    benchmark_: Benchmark, reader: MediaReader, tmp_path: Path
) -> None:
    recipe = BenchmarkExportRecipe(name="Pairs", protocol="preference", sampling="fps-2")
    export_vlmevalkit(benchmark_, recipe, folder=tmp_path, reader=reader)
    with (tmp_path / "Pairs.tsv").open(encoding="utf-8", newline="") as file:
        first = next(csv.DictReader(file, delimiter="\t"))
    data = VlmDataset(tmp_path)
    whole = data.message(0, whole=True)
    assert [part["type"] for part in whole] == ["text", "video", "text", "video", "text"]
    assert whole[3]["value"].endswith(first["video_path_2"])
    assert [part["value"] for part in data.message(0, whole=False) if part["type"] == "text"][
        :-1
    ] == ["Video 1:", "Video 2:"]
    assert "PACE = {'fps': 2.0}" in (tmp_path / f"{MODULE}.py").read_text(encoding="utf-8")


def test_replies_that_a_table_turned_into_numbers_are_read(
    benchmark_: Benchmark, reader: MediaReader, tmp_path: Path
) -> None:
    recipe = BenchmarkExportRecipe(name="Pairs", protocol="preference", sampling=None)
    export_vlmevalkit(benchmark_, recipe, folder=tmp_path, reader=reader)
    cells = [1, 2.0, float("nan")]
    rows = [{"index": float(i), "prediction": cell} for i, cell in enumerate(cells)]
    figures = VlmDataset(tmp_path).evaluate(rows, eval_file=tmp_path / "x.xlsx")
    assert (figures["questions"], figures["answered"]) == (3, 2)
    assert figures["failed: empty-reply"] == 1
    assert not [name for name in figures if name.startswith("unread")]


def test_a_model_that_takes_frames_needs_a_sampling(
    benchmark_: Benchmark, reader: MediaReader, tmp_path: Path
) -> None:
    recipe = replace(REALISM, sampling=None)
    export_vlmevalkit(benchmark_, recipe, folder=tmp_path, reader=reader)
    data = VlmDataset(tmp_path)
    assert data.message(0, whole=True)[0]["type"] == "video"
    with pytest.raises(InvalidSettingError, match="uniform-8"):
        data.message(0, whole=False)
