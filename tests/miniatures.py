"""Miniatures of public benchmarks in the layout of their owners: two clips of each label, and their tables."""

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from unreel.media.access import read_sample_clip

Files = Mapping[str, bytes]


def _build_clips(*paths: str) -> dict[str, bytes]:
    """Clips at `paths`, whose bytes differ in a box that players skip."""
    clip, names = read_sample_clip("ball-0.mp4"), [f"free{path}".encode() for path in paths]
    boxes = [(len(name) + 4).to_bytes(4, "big") + name for name in names]
    return {path: clip + box for path, box in zip(paths, boxes, strict=True)}


def pack(files: Files) -> bytes:
    """The bytes of a zip file with `files`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return buffer.getvalue()


def split(name: str, data: bytes, n_parts: int) -> dict[str, bytes]:
    """The parts `NAME.001`, `NAME.002` and so on of `data`."""
    size = -(-len(data) // n_parts)
    return {f"{name}.{n + 1:03}": data[n * size : (n + 1) * size] for n in range(n_parts)}


def _table(head: str, *rows: str) -> bytes:
    return "\n".join((head, *rows, "")).encode()


def _lines(rows: Iterable[object]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _deeptracereward(_url: str) -> Files:
    shared = {"video_width": 192, "video_height": 128, "video_frame_rate": 24.0}
    shared |= {"video_frame_count": 24, "video_duration": 1.0, "split": "test"}
    trace = {"faketrace_first_frame": 6, "faketrace_last_frame": 18, "faketrace_explanations": ""}
    trace |= {"faketrace_bbox": {"left": 20, "top": 30, "width": 60, "height": 40}}
    rows = [
        {"video_id": f"f{n}", "video_path": f"videos/f{n}.mp4", "video_type": "fake_video"}
        | {"video_source": "Kling 1.0", "faketrace_check_applies": tags}
        | shared
        | trace
        for n, tags in enumerate((["Object Merging"], float("nan")))
    ] + [
        {"video_id": f"r{n}", "video_path": f"real_videos/r{n}.mp4", "video_type": "real_video"}
        | {"faketrace_check_applies": float("nan")}
        | shared
        for n in range(2)
    ]
    return {
        "README.md": b"x",
        "all_data.json": json.dumps(rows).encode(),
        "real_videos.zip": pack(_build_clips("real_videos/r0.mp4", "real_videos/r1.mp4")),
        **split("videos.zip", pack(_build_clips("videos/f0.mp4", "videos/f1.mp4")), 4),
    }


def _video_reality_test(_url: str) -> Files:
    hard = ("Real_ASMR/videos/1.mp4", "Sora2-t2v/1.mp4", "HunyuanVideo/text/1.mp4")
    easy = ("Real_ASMR_easy/videos/1.mp4", "Fake_ASMR_easy/wan_woprompt/1.mp4")
    return {
        "Real_ASMR_Prompt.csv": _table("ref,text", "pictures/1.png,a knife cuts soap"),
        "Real_ASMR_easy/prompt.csv": _table("ref,text", "1.png,rain"),
        "Real_ASMR/pictures/1.png": b"x",
        **_build_clips(*hard, *easy),
    }


def _videophy_2(url: str) -> Files:
    names = [f"cogvideo/{n}.mp4" for n in range(4)]
    place = f"{url}/datasets/videophysics/videophy2_test/resolve/main"
    rows = [f'"a ball, n {n}",{place}/{name},4,{n + 1},1' for n, name in enumerate(names)]
    return {
        "videophy2_test.csv": _table("caption,video_url,sa,pc,joint", *rows),
        **_build_clips(*names),
    }


def _deepfake_eval_2024(_url: str) -> Files:
    head = "Filename,Date,Video Ground Truth,Audio Ground Truth,Public Comments,Finetuning Set"
    truths = ("Fake", "Real", "Unknown", "Fake")
    rows = [
        f"{n}.mp4,2024,{truth},Real,,{'Test' if n < 3 else 'Train'}"
        for n, truth in enumerate(truths)
    ]
    clips = _build_clips(*(f"video-data/{n}.mp4" for n in range(4)))
    return {"video-metadata-publish.csv": _table(head, *rows), **clips}


def _vif_bench(_url: str) -> Files:
    paths = [
        f"source_videos/{part}/{n}.mp4" for part in ("Real", "Fake/LTX", "Fake/Wan") for n in "ab"
    ]
    return {"source_videos.zip": pack(_build_clips(*paths))}


def _genbuster_bench(_url: str) -> Files:
    paths = [
        f"GenBuster-Bench/{track}/{kind}/{track}.mp4"
        for track in ("id", "ood", "wild")
        for kind in ("real", "fake/sora")
    ]
    return {"GenBuster-Bench.zip": pack(_build_clips(*paths))}


def _videofeedback2(url: str) -> Files:
    names = [f"{n:06}_p.mp4" for n in range(4)]
    rows = [
        {
            "video_name": name,
            "video_url": f"{url}/kling/{name}",
            "prompt": "a ball",
            "visual_score": 3,
        }
        | {"t2v_score": 2, "phy_score": n + 1}
        for n, name in enumerate(names)
    ]
    return {
        "data_27k_test (VideoScoreBench-v2).json": json.dumps(rows).encode(),
        "videos_27k_1.zip": pack(_build_clips(*(f"videos_27k_1/{name}" for name in names[:2]))),
        "videos_27k_2.zip": pack(_build_clips(*names[2:])),
    }


def _aigvdbench(_url: str) -> Files:
    rows = [{"Video_id": name, "Video_Prompts": "a ball"} for name in ("r0", "r1", "f0", "f1")]
    return {
        "Split/test.jsonl": _lines(rows),
        "AIGVDBench/Real/Real.zip": pack(_build_clips("r0.mp4", "r1.mp4")),
        "AIGVDBench/OpenSource/T2V/Wan.zip": pack(_build_clips("Wan/f0.mp4", "Wan/f1.mp4")),
    }


def _loki(_url: str) -> Files:
    return {
        "media_data.zip": pack(_build_clips("media_data/video/r.mp4", "media_data/video/f.mp4"))
    }


def build_loki_annotations() -> Files:
    """The tables of LOKI, which are not on the hub."""
    rows = [
        {"video_path": f"media_data/video/{name}.mp4", "answer": "Yes", "choices": []}
        | {"question_type": f"video_tf_video_{label}_ask_{asked}_open-sora"}
        for name, label in (("r", "real"), ("f", "fake"))
        for asked in ("real", "fake")
    ]
    pair = ["media_data/video/f.mp4", "media_data/video/r.mp4"]
    pairs = [
        {"video_path": pair, "answer": "B", "question_type": "video_mc_real_from_fake_open-sora"}
    ]
    return {
        "true_or_false.json": json.dumps(rows).encode(),
        "multi_choice.json": json.dumps(pairs).encode(),
    }


@dataclass(frozen=True, kw_only=True)
class Miniature:
    """A benchmark that can be downloaded, its files on the hub, and what is read from them."""

    repository: str
    build: Callable[[str], Files]
    """Files of the repository on the hub at a URL."""
    labels: Mapping[str, int]
    pairs: int = 0
    traces: int = 0
    rated: int = 0
    asked: int
    """Number of questions with the settings of the catalogue."""
    shown: str
    """Settings that `unreel eval NAME` says that it takes from the catalogue."""


MINIATURES: Mapping[str, Miniature] = {
    "deeptracereward": Miniature(
        repository="DeeptraceReward/RewardData",
        build=_deeptracereward,
        labels={"generated": 2, "real": 2},
        traces=2,
        asked=4,
        shown="protocol trace, split test, sampling fps-2, prompt paper",
    ),
    "video-reality-test": Miniature(
        repository="kolerk/Video_Reality_Test",
        build=_video_reality_test,
        labels={"generated": 3, "real": 2},
        pairs=3,
        asked=5,
        shown="protocol reality, sampling paper-8, prompt paper",
    ),
    "videophy-2": Miniature(
        repository="videophysics/videophy2_test",
        build=_videophy_2,
        labels={"generated": 4},
        rated=4,
        asked=4,
        shown="protocol realism, split test, prompt paper",
    ),
    "deepfake-eval-2024": Miniature(
        repository="nuriachandra/Deepfake-Eval-2024",
        build=_deepfake_eval_2024,
        labels={"generated": 2, "real": 1},
        asked=2,
        shown="protocol reality, split test, prompt paper",
    ),
    "vif-bench": Miniature(
        repository="JoeLeelyf/ViF-Bench",
        build=_vif_bench,
        labels={"generated": 4, "real": 2},
        pairs=4,
        asked=6,
        shown="protocol reality, prompt paper",
    ),
    "genbuster-bench": Miniature(
        repository="l8cv/GenBuster-Bench",
        build=_genbuster_bench,
        labels={"generated": 3, "real": 3},
        asked=6,
        shown="protocol reality, prompt paper",
    ),
    "videofeedback2": Miniature(
        repository="TIGER-Lab/VideoFeedback2",
        build=_videofeedback2,
        labels={"generated": 4},
        rated=4,
        asked=4,
        shown="protocol realism, split test, prompt paper",
    ),
    "aigvdbench": Miniature(
        repository="AIGVDBench/AIGVDBench",
        build=_aigvdbench,
        labels={"generated": 2, "real": 2},
        asked=4,
        shown="protocol reality, split test, prompt paper",
    ),
    "loki": Miniature(
        repository="bczhou/LOKI",
        build=_loki,
        labels={"generated": 1, "real": 1},
        pairs=1,
        asked=2,
        shown="protocol reality, prompt paper",
    ),
}
