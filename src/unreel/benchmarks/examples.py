"""Small example benchmarks, one for each layout: their tables, and synthesised clips."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from unreel.benchmarks.entry import BenchmarkLayout
from unreel.core.errors import UnreadableSourceError
from unreel.core.output_files import OutputDirectory
from unreel.media.access import read_sample_clip


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutExample:
    """Example benchmark in one layout, with a sentence about when to choose the layout."""

    words: str
    clips: tuple[str, ...]
    """Paths of the clips."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Contents of the tables, by name."""
    open_as: str = ""
    """Path to open, relative to the example's folder."""


EXAMPLES: Mapping[BenchmarkLayout, LayoutExample] = {
    BenchmarkLayout.LIST: LayoutExample(
        words="One table with a row for each clip. Start here.",
        clips=("clips/soap.mp4", "clips/soap-veo.mp4", "clips/rain.mp4", "clips/rain-sora.mp4"),
        tables={
            "clips.csv": """\
file,label,creator,split,group
clips/soap.mp4,real,,test,soap
clips/soap-veo.mp4,generated,Veo,test,soap
clips/rain.mp4,real,,test,rain
clips/rain-sora.mp4,generated,Sora,test,rain
"""
        },
        open_as="clips.csv",
    ),
    BenchmarkLayout.FOLDERS: LayoutExample(
        words="No table: filmed clips below real/, others below generated/CREATOR/.",
        clips=("real/soap.mp4", "real/rain.mp4", "generated/Veo/soap.mp4", "generated/Sora/a.mp4"),
    ),
    BenchmarkLayout.VIDEO_FOLDER: LayoutExample(
        words="A video folder of Hugging Face: metadata.csv, .tsv, .jsonl or .parquet and its media.",
        clips=("media/0.mp4", "media/1.mp4"),
        tables={
            "metadata.jsonl": """\
{"file_name": "media/0.mp4", "label": "real", "split": "test", "licence": "CC0-1.0"}
{"file_name": "media/1.mp4", "label": "generated", "creator": "Veo", "split": "test"}
"""
        },
    ),
    BenchmarkLayout.REALITY: LayoutExample(
        words="Video Reality Test: clips.csv, real/ and a folder of twins for each creator.",
        clips=("real/soap.mp4", "real/rain.mp4", "Veo/soap.mp4", "Veo/rain.mp4"),
        tables={
            "clips.csv": """\
clip,difficulty,prompt
soap,easy,"a knife cuts soap, slowly"
rain,hard,rain on a tin roof
"""
        },
    ),
    BenchmarkLayout.REALISM: LayoutExample(
        words="VideoRealBench: a table of realism scores; without labels all clips are generated.",
        clips=("clips/a.mp4", "clips/b.mp4"),
        tables={
            "rated.csv": """\
video,model,prompt,score_1,score_2,score_3,problem_description_1,problem_description_2,problem_description_3
clips/a.mp4,Veo,a man runs,2,2,3,his foot passes through the kerb,legs swap,the foot slides
clips/b.mp4,Sora,a cup falls,5,4,5,,,
"""
        },
        open_as="rated.csv",
    ),
    BenchmarkLayout.DEEPTRACE: LayoutExample(
        words="DeepTraceReward as distributed: all_data.json, a row for each marked trace.",
        clips=("videos/f1.mp4", "real_videos/r1.mp4"),
        tables={
            "all_data.json": """\
[
  {"video_id": "f1", "video_path": "videos/f1.mp4", "video_type": "fake_video",
   "video_source": "Kling 1.0", "split": "test", "video_prompt": "a dog catches a ball",
   "video_width": 192, "video_height": 128, "video_frame_rate": 24, "video_frame_count": 24,
   "video_duration": 1.0, "faketrace_first_frame": 6, "faketrace_last_frame": 18,
   "faketrace_bbox": {"left": 20, "top": 30, "width": 60, "height": 40},
   "faketrace_check_applies": ["Object Merging"],
   "faketrace_explanations": "the ball melts into the dog's mouth"},
  {"video_id": "r1", "video_path": "real_videos/r1.mp4", "video_type": "real_video",
   "video_source": "Panda-70M", "split": "test", "video_width": 192, "video_height": 128,
   "video_frame_rate": 24, "video_frame_count": 24, "video_duration": 1.0}
]
"""
        },
    ),
    BenchmarkLayout.LAV_DF: LayoutExample(
        words="LAV-DF or AV-Deepfake1M: a JSON list of clips with their fake segments.",
        clips=("test/000.mp4", "test/001.mp4"),
        tables={
            "metadata.json": """\
[
  {"file": "test/000.mp4", "fake_segments": [], "original": null, "split": "test",
   "modify_type": "real", "video_frames": 25},
  {"file": "test/001.mp4", "fake_segments": [[0.2, 0.6]], "original": "test/000.mp4",
   "split": "test", "modify_type": "visual_modified", "video_frames": 25}
]
"""
        },
        open_as="metadata.json",
    ),
    BenchmarkLayout.ACTIVITY_FORENSICS: LayoutExample(
        words="ActivityForensics: text lines with the name, the length and the fake segments.",
        clips=("v_000.mp4", "v_001.mp4"),
        tables={"test.txt": "v_000 1.0 0.2=0.4+0.6=0.8\nv_001 1.0\n"},
        open_as="test.txt",
    ),
    BenchmarkLayout.VIF_COT: LayoutExample(
        words="ViF-CoT: a JSON list of conversations whose answers contain tagged segments.",
        clips=("videos/0.mp4", "videos/1.mp4"),
        tables={
            "vif_cot.json": """\
[
  {"videos": ["videos/0.mp4"], "messages": [
     {"role": "user", "content": "<video>Is the video real or fake?"},
     {"role": "assistant", "content": "<think>The hand melts: <type>object distortion</type> in <t>[0.2, 0.6]</t> at <bbox>[20, 30, 80, 70]</bbox>.</think><answer>Fake</answer>"}]},
  {"videos": ["videos/1.mp4"], "messages": [
     {"role": "user", "content": "<video>Is the video real or fake?"},
     {"role": "assistant", "content": "<think>Nothing is odd.</think><answer>Real</answer>"}]}
]
"""
        },
        open_as="vif_cot.json",
    ),
}


def write_example_benchmark(layout: BenchmarkLayout, into: Path) -> Path:
    """Write the example of `layout` with synthesised clips to the new folder `into`.

    Returns:
        The path to open as a benchmark.

    Raise `UnreadableSourceError` if `into` exists and is not an empty folder.
    """
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise UnreadableSourceError(str(into), "not an empty folder", "Name a new one")
    example = EXAMPLES[layout]
    folder = OutputDirectory(into, published=True)
    for number, clip in enumerate(example.clips):
        folder.write(clip, read_sample_clip(f"ball-{number}.mp4"))
    for name, text in example.tables.items():
        folder.write(name, text.encode())
    return into / example.open_as
