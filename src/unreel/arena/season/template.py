"""Commented season file for a benchmark."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from unreel.benchmarks.entry import Entry
from unreel.benchmarks.loader import open_benchmark
from unreel.core.clip import Generated
from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory

_TEMPLATE = """\
# Season of unreel. docs/arena.md explains all settings.
name = {name}
benchmark = {benchmark}  # path from this file
# digest = ""            # hash of the benchmark; `unreel arena plan {file} --pin` writes it
protocol = "reality"     # or trace, preference
seed = 0
# split = "test"         # only this split
# limit = 50             # only this number of scenes, sampled by the seed
# floors = false         # do not add the baselines coin, always-real, metadata and motion

{creators}
# [[creator]]            # clips of your own generator, one file per scene
# name = "Mine"
# kind = "folder"
# path = "my-clips"

# [[reviewer]]           # models, programs and services that judge; repeat it for several
# model = "openai/gpt-5"

# [[condition]]          # model input
# sampling = "uniform-8"

# [budget]
# max_questions = 1000
# max_cost_usd = 10.0
"""
_CREATOR = """\
[[creator]]
name = {name}
kind = "frozen"          # its clips are in the benchmark
creator = {name}
"""
_NO_CREATOR = """\
[[creator]]              # the benchmark has no generated clips: real clips, recompressed
name = "recompressed"
kind = "degrade"
way = "recompressed"
"""


def write_season(benchmark: Path, file: Path) -> Sequence[str]:
    """Write a season file for `benchmark` to `file`, and return the creators in it.

    Raises:
        InvalidSettingError: The file exists.
        UnreadableSourceError: There is no benchmark at `benchmark`.
    """
    if file.exists():
        setting, problem = "--out", f"{file} exists and is not replaced"
        raise InvalidSettingError(setting, problem, "Name another file")
    origins = [row.origin for row in open_benchmark(benchmark) if isinstance(row, Entry)]
    creators = sorted({each.creator for each in origins if isinstance(each, Generated)})
    sections = [_CREATOR.format(name=json.dumps(name)) for name in creators] or [_NO_CREATOR]
    path = Path(os.path.relpath(benchmark.absolute(), file.absolute().parent))
    text = _TEMPLATE.format(
        name=json.dumps(benchmark.absolute().stem),
        benchmark=json.dumps(path.as_posix()),
        file=file.name,
        creators="\n".join(sections),
    )
    OutputDirectory(file.absolute().parent, published=True).write(file.name, text.encode())
    return creators
