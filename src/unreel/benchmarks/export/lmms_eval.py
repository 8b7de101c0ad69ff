"""Export of a benchmark as a task folder of lmms-eval 0.7: YAML, data, and a module with prompts and scorer.

The YAML is JSON except for its `!function` tags. Run it with

    python -m lmms_eval --include_path FOLDER --tasks NAME --model ...

lmms-eval 0.7 requires an older PyAV than unreel: install unreel there with `pip install --no-deps`. The task needs
no media code of unreel, because the frames are written with it.
"""

import json
import re
from pathlib import Path
from typing import Any

from unreel.benchmarks.export.exported_question import (
    QUESTIONS_FILE,
    BenchmarkExportRecipe,
    list_exported_task_metrics,
)
from unreel.benchmarks.export.question_writer import BenchmarkExportResult, write_exported_questions
from unreel.benchmarks.loader import Benchmark
from unreel.core.output_files import OutputDirectory
from unreel.media.reader import MediaReader

MODULE = "unreel_task"
MAX_NEW_TOKENS = 2048
_HEAD = '''\
"""{name}: a task of lmms-eval, written by unreel.

Every question, reading and figure is unreel's own ({instrument}). A reply that cannot be read is counted as
unread and a request that failed as failed; neither becomes a score.
"""

from pathlib import Path

from unreel.benchmarks.export.lmms_task import open_task

TASK = open_task(str(Path(__file__).resolve().parent))


def doc_to_visual(doc):
    return TASK.visuals(doc)


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    return TASK.prompt


def doc_to_messages(doc, lmms_eval_specific_kwargs=None):
    return TASK.messages(doc)


def process_results(doc, results):
    return TASK.results(doc, results)
'''
_METRIC_FUNCTION = """

def {function}(results):
    return TASK.figure({name!r}, results)
"""
_FUNCTION_TAG = re.compile(r'"!function ([\w.]+)"')


def export_lmms_eval(
    benchmark: Benchmark, recipe: BenchmarkExportRecipe, *, folder: Path, reader: MediaReader
) -> BenchmarkExportResult:
    """Write `benchmark` to `folder` as the task `recipe.name`; it runs wherever unreel is installed."""
    exported = write_exported_questions(benchmark, recipe, folder=folder, reader=reader)
    metrics = list(list_exported_task_metrics(recipe.protocol))
    into = OutputDirectory(folder, published=True)
    head = _HEAD.format(name=recipe.name, instrument=recipe.instrument.instrument)
    functions = (
        _METRIC_FUNCTION.format(function=f"figure_{i}", name=name)
        for i, (name, _) in enumerate(metrics)
    )
    into.write(f"{MODULE}.py", (head + "".join(functions)).encode())
    yaml = json.dumps(_build_lmms_task_config(recipe, folder, metrics), indent=2)
    tagged = _FUNCTION_TAG.sub(r'!function "\1"', yaml)
    into.write(f"{recipe.name}.yaml", (tagged + "\n").encode())
    return exported


def _build_lmms_task_config(
    recipe: BenchmarkExportRecipe, folder: Path, metrics: list[tuple[str, bool | None]]
) -> dict[str, Any]:
    return {
        "task": recipe.name,
        "dataset_path": "json",
        # A relative path would be resolved from the tool's working directory.
        "dataset_kwargs": {"data_files": {"test": str((folder / QUESTIONS_FILE).resolve())}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_visual": f"!function {MODULE}.doc_to_visual",
        "doc_to_text": f"!function {MODULE}.doc_to_text",
        "doc_to_messages": f"!function {MODULE}.doc_to_messages",
        "doc_to_target": "answer",
        # Without `until` the tool stops at the first empty line, within the reasoning.
        "generation_kwargs": {
            "until": [],
            "do_sample": False,
            "temperature": 0,
            "max_new_tokens": MAX_NEW_TOKENS,
        },
        "process_results": f"!function {MODULE}.process_results",
        "metric_list": [
            {
                "metric": name,
                "aggregation": f"!function {MODULE}.figure_{i}",
                "higher_is_better": more_is_better,
            }
            for i, (name, more_is_better) in enumerate(metrics)
        ],
        "metadata": [{"version": recipe.instrument.instrument.version, "prompt": recipe.prompt}],
    }
