"""Export of a benchmark as a TSV file for VLMEvalKit, with the Python class that reads it.

None of VLMEvalKit's own classes reads a video TSV that it does not ship, so a subclass of its
`VideoBaseDataset` is written next to the TSV. Run it with

    python FOLDER/unreel_dataset.py path/to/VLMEvalKit/run.py --data NAME --model ...
"""

import csv
import json
from pathlib import Path

from unreel.benchmarks.export.exported_question import BenchmarkExportRecipe, read_exported_rows
from unreel.benchmarks.export.question_writer import BenchmarkExportResult, write_exported_questions
from unreel.benchmarks.loader import Benchmark
from unreel.core.output_files import OutputDirectory
from unreel.media.reader import MediaReader
from unreel.media.sampling import (
    PerSecondSampling,
    UniformSampling,
    VideoRealityTestSampling,
    VlmEvalKitCountSampling,
    VlmEvalKitRateSampling,
    parse_sampling,
)

MODULE = "unreel_dataset"
COLUMNS = ("index", "video", "video_path", "question", "answer")
_PAIR_COLUMN = "video_path_2"
_MODULE_TEXT = '''\
"""{name}: a video data set of VLMEvalKit, written by unreel.

Every question, reading and figure is unreel's own ({instrument}). A reply that cannot be read is counted as
unread and a request that failed as failed; neither becomes a score.
"""

import runpy
import sys
from functools import partial
from pathlib import Path

import vlmeval.dataset
from vlmeval.dataset import video_dataset_config
from vlmeval.dataset.video_base import VideoBaseDataset
from vlmeval.smp import load

from unreel.benchmarks.export.vlm_dataset import VlmDataset

NAME = {name!r}
FOLDER = Path(__file__).resolve().parent
# How models that take the file itself are told to sample it.
PACE = {pace!r}


class UnreelVideo(VideoBaseDataset):
    TYPE = "Video-VQA"

    def __init__(self, dataset=NAME, **kwargs):
        self.unreel = VlmDataset(FOLDER)
        super().__init__(dataset=dataset, pack=False, **{{**PACE, **kwargs}})

    @classmethod
    def supported_datasets(cls):
        return [NAME]

    def prepare_dataset(self, dataset):
        return {{"root": str(self.unreel.media), "data_file": str(FOLDER / f"{{NAME}}.tsv")}}

    def build_prompt(self, line, video_llm):
        row = self.data.iloc[line] if isinstance(line, int) else line
        return self.unreel.message(int(row["index"]), whole=bool(video_llm))

    def evaluate(self, eval_file, **judge_kwargs):
        return self.unreel.evaluate(load(eval_file).to_dict("records"), eval_file=Path(eval_file))


def register():
    """Make the data set known to VLMEvalKit under its name."""
    video_dataset_config.supported_video_datasets[NAME] = partial(UnreelVideo, dataset=NAME)
    vlmeval.dataset.UnreelVideo = UnreelVideo


if __name__ == "__main__":
    register()
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
'''


def export_vlmevalkit(
    benchmark: Benchmark, recipe: BenchmarkExportRecipe, *, folder: Path, reader: MediaReader
) -> BenchmarkExportResult:
    """Write `benchmark` to `folder` as `NAME.tsv` and its class; it runs wherever unreel is installed."""
    exported = write_exported_questions(benchmark, recipe, folder=folder, reader=reader)
    pairs = recipe.instrument.subject == "pair"
    columns = (*COLUMNS, _PAIR_COLUMN) if pairs else COLUMNS
    into = OutputDirectory(folder, published=True)
    with into.create_text(f"{recipe.name}.tsv") as file:
        table = csv.DictWriter(file, columns, delimiter="\t", lineterminator="\n")
        table.writeheader()
        for row in read_exported_rows(folder):
            first, *second = json.loads(row["videos"])
            cells = {
                "index": row["index"],
                # VLMEvalKit identifies a clip by its path without the suffix .mp4.
                "video": first.removesuffix(".mp4"),
                "video_path": first,
                "question": row["question"],
                "answer": row["answer"],
            }
            table.writerow(cells | ({_PAIR_COLUMN: second[0]} if second else {}))
    pace: dict[str, float] = {}
    match parse_sampling(recipe.sampling) if recipe.sampling else None:
        case UniformSampling(n) | VlmEvalKitCountSampling(n) | VideoRealityTestSampling(n):
            pace = {"nframe": n}
        case PerSecondSampling(fps) | VlmEvalKitRateSampling(fps):
            pace = {"fps": float(fps)}
        case _:
            pass
    text = _MODULE_TEXT.format(name=recipe.name, instrument=recipe.instrument.instrument, pace=pace)
    into.write(f"{MODULE}.py", text.encode())
    return exported
