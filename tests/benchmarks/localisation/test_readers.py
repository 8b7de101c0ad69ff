"""Marked and predicted segments in the formats of others: read, scored, and rejected with reasons."""

import json
from pathlib import Path

import pytest

from unreel.api.score import score
from unreel.benchmarks.entry import BenchmarkLayout, Entry, Rejected
from unreel.benchmarks.imported_answers import read_answer_file
from unreel.benchmarks.loader import open_benchmark
from unreel.benchmarks.localisation import json_stream
from unreel.benchmarks.localisation.json_stream import stream_json_items
from unreel.core.box import Box
from unreel.core.errors import UnreadableSourceError
from unreel.core.estimate import Estimate
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category

AV = [
    {
        "file": "id1/real.mp4",
        "original": None,
        "split": "val",
        "modify_type": "real",
        "fake_segments": [],
        "audio_fake_segments": [],
        "visual_fake_segments": [],
        "video_frames": 250,
        "audio_frames": 160000,
    },
    {
        "file": "id1/fake.mp4",
        "original": "id1/real.mp4",
        "split": "val",
        "modify_type": "both_modified",
        "fake_segments": [[1.0, 2.5], [4.04, 5]],
        "audio_fake_segments": [],
        "visual_fake_segments": [],
        "video_frames": 250,
        "audio_frames": 160000,
    },
]
LAV = [
    {"file": "test/1.mp4", "n_fakes": 1, "fake_periods": [[0.5, 1.5]], "duration": 6.016, "original": "test/0.mp4",
     "modify_video": True, "modify_audio": False, "split": "test", "transcript": "so", "timestamps": [["so", 0.1, 0.2]]},
]  # fmt: skip


def write(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def spans(entry: Entry) -> list[tuple[float, float]]:
    return [(t.span.start_us / 1e6, t.span.end_us / 1e6) for t in entry.traces]


def test_av_deepfake1m_gives_segments_lengths_and_scenes(tmp_path: Path) -> None:
    opened = open_benchmark(write(tmp_path, "val_metadata.json", AV))
    assert opened.layout == BenchmarkLayout.LAV_DF
    real, fake = opened
    assert isinstance(real, Entry)
    assert isinstance(fake, Entry)
    assert (spans(real), spans(fake)) == ([], [(1.0, 2.5), (4.04, 5.0)])
    assert real.facts.duration_us == fake.facts.duration_us == 10_000_000
    assert real.group == fake.group == "id1/real.mp4"
    assert (fake.split, fake.label.value, real.label.value) == ("val", "generated", "real")


def test_lav_df_calls_them_periods_and_gives_seconds(tmp_path: Path) -> None:
    (fake,) = open_benchmark(write(tmp_path, "metadata.min.json", LAV))
    assert isinstance(fake, Entry)
    assert (spans(fake), fake.facts.duration_us) == ([(0.5, 1.5)], 6_016_000)


def test_activity_forensics_is_a_line_for_each_clip(tmp_path: Path) -> None:
    opened = open_benchmark(write(tmp_path, "test.txt", "v_a 60.5 1.5=3+10=12.25\nv_b 30\n\n"))
    assert opened.layout == BenchmarkLayout.ACTIVITY_FORENSICS
    fake, clean = opened
    assert isinstance(fake, Entry)
    assert isinstance(clean, Entry)
    assert (fake.location, spans(fake)) == ("v_a.mp4", [(1.5, 3.0), (10.0, 12.25)])
    assert (spans(clean), clean.facts.duration_us) == ([], 30_000_000)


def conversation(text: str, **more: object) -> dict[str, object]:
    turns = [{"role": "user", "content": "<video>?"}, {"role": "assistant", "content": text}]
    return {"videos": ["v/1.mp4"], "messages": turns, **more}


TAGS = "<type>object merging</type> in <t>[1, 2]</t> at <bbox>[10, 20, 50, 60]</bbox>"


def test_vif_cot_gives_boxes_only_if_the_size_of_the_frame_is_known(tmp_path: Path) -> None:
    answer = f"<think>{TAGS}</think><answer>Fake</answer>"
    opened = open_benchmark(write(tmp_path, "a.json", [conversation(answer)]))
    assert opened.layout == BenchmarkLayout.VIF_COT
    (bare,) = opened
    (sized,) = open_benchmark(
        write(tmp_path, "b.json", [conversation(answer, width=100, height=100)])
    )
    assert isinstance(bare, Entry)
    assert isinstance(sized, Entry)
    assert bare.traces[0].span == TimeSpan(1_000_000, 2_000_000)
    assert bare.traces[0].categories == {Category.OBJECT_MERGING}
    assert bare.traces[0].track == ()
    assert sized.traces[0].track == (BoxAt(1_000_000, Box(0.1, 0.2, 0.5, 0.6)),)
    (older,) = open_benchmark(
        write(
            tmp_path,
            "c.json",
            [{"video": "v/1.mp4", "conversations": [{"value": "<answer>Real</answer>"}]}],
        )
    )
    assert isinstance(older, Entry)
    assert older.traces == ()


@pytest.mark.parametrize(
    ("segments", "reason"),
    [
        ([[2, 1]], "span must satisfy"),
        ([[0, 1e300]], "Write a plain number"),
        ([[0, 10_000_001]], "at most 10,000,000"),
        ([[float("nan"), 1]], "Write a plain number"),
        ([[0, float("inf")]], "Write a plain number"),
        ([[-1, 1]], "span must satisfy"),
        ([[0, 1, 2]], "Write [start, end]"),
        ("0-1", "Write a list"),
        (None, "Write a list"),
        ([[0, 1]] * 100_000, "at most 1000 are read"),
        ([["a", "b"]], "Write a plain number"),
    ],
)
def test_a_wrong_segment_ends_in_a_rejected_row(
    segments: object, reason: str, tmp_path: Path
) -> None:
    rows = [*AV, {"file": "x.mp4", "fake_segments": segments}]
    found = list(open_benchmark(write(tmp_path, "m.json", rows)))
    assert [type(row) for row in found] == [Entry, Entry, Rejected]
    assert reason in str(found[-1])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("v", "Write `vid duration s=e+s=e`"),
        ("v 10 1=2 3=4", "Write `vid duration s=e+s=e`"),
        ("v nan 1=2", "Write a plain number"),
        ("v 0 1=2", "above zero"),
        ("v 10 2=1", "span must satisfy"),
        ("v 10 1=1e300", "Write a plain number"),
        ("v 10 1=10000001", "at most 10,000,000"),
        ("v 10 1-2", "Write start=end"),
        ("../v 10 1=2", "inside the benchmark's folder"),
        ("v 10 " + "+".join(["1=2"] * 5000), "at most 1000"),
    ],
)
def test_a_wrong_line_ends_in_a_rejected_row(line: str, reason: str, tmp_path: Path) -> None:
    found = list(open_benchmark(write(tmp_path, "t.txt", f"v_a 10 1=2\n{line}\nv_b 10\n")))
    assert [type(row) for row in found] == [Entry, Rejected, Entry]
    assert reason in str(found[1])


def test_ten_million_segments_in_a_line_are_passed_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    with path.open("w") as file:
        file.write("v_a 10 1=2\nhuge 10 ")
        for _ in range(100):
            file.write("1=2+" * 100_000)
        file.write("1=2\nv_b 10 3=4\n")
    first, huge, last = open_benchmark(path)
    assert isinstance(first, Entry)
    assert isinstance(huge, Rejected)
    assert "a line of more than" in huge.why
    assert isinstance(last, Entry)


def test_an_endless_json_element_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    with path.open("w") as file:
        file.write('{"a.mp4": [')
        for _ in range(100):
            file.write("[1,0,1]," * 100_000)
    with pytest.raises(UnreadableSourceError, match="an element of more than"):
        list(stream_json_items(path))


def test_a_json_element_that_is_too_large_ends_in_a_rejected_row(tmp_path: Path) -> None:
    path, pair = tmp_path / "m.json", "[1,2]," * 100_000
    with path.open("w") as file:
        file.write('[{"file": "huge.mp4", "fake_segments": [')
        file.writelines(pair for _ in range(15))
        file.write('[1,2]], "note": "]}\\"[{"},\n')
        file.write(json.dumps(AV[0]) + "]")
    huge, last = open_benchmark(path)
    assert isinstance(huge, Rejected)
    assert "an element of more than 4194304 bytes" in huge.why
    assert isinstance(last, Entry)


def test_a_number_of_too_many_digits_ends_in_a_rejected_row(tmp_path: Path) -> None:
    text = f'{{"a.mp4": [[0.5, 0, {"9" * 5_000}]], "b.mp4": [[0.5, 1, 2]]}}'
    rejected, read = read_answer_file(write(tmp_path, "p.json", text))
    assert isinstance(rejected, Rejected)
    assert "Write a plain number" in rejected.why
    assert not isinstance(read, Rejected)


@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_a_large_element_is_skipped_wherever_a_chunk_ends(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "READ_BYTES", chunk)
    monkeypatch.setattr(json_stream, "ROW_BYTES", 12)
    large = {"a]\\": ['"]}', [[], {}], "\u20ac{"], "b": [1, 2, 3, 4]}
    path = write(tmp_path, "l.json", json.dumps([1, large, [2]], ensure_ascii=False))
    assert [str(value) for _, value in stream_json_items(path)] == [
        "1",
        "an element of more than 12 bytes",
        "[2]",
    ]


@pytest.mark.parametrize("chunk", [1, 3, 7, 1000])
def test_elements_are_read_wherever_a_chunk_ends(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "READ_BYTES", chunk)
    listed = write(tmp_path, "l.json", json.dumps([12, "a,]", {"b": [1, 2]}, []], indent=1))
    assert [value for _, value in stream_json_items(listed)] == [12, "a,]", {"b": [1, 2]}, []]
    named = write(tmp_path, "o.json", '{"a": [1], "b:c" : {} }')
    assert list(stream_json_items(named)) == [("a", [1]), ("b:c", {})]
    assert list(stream_json_items(write(tmp_path, "e.json", " [ ] "))) == []


@pytest.mark.parametrize("text", ["", "3", "[1", "[1 2]", '{"a" 1}', "[" * 100_000, '{"a": nul}'])
def test_a_damaged_file_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableSourceError):
        list(stream_json_items(write(tmp_path, "d.json", text)))


def test_predictions_of_each_format_are_scored(tmp_path: Path) -> None:
    marked = write(tmp_path, "m.json", AV)
    predicted = {"id1/real.mp4": [[0.1, 7, 8]], "id1/fake.mp4": [[0.9, 1, 2.5], [0.4, 4, 5]]}
    card = score(write(tmp_path, "p.json", predicted), benchmark=marked, protocol="locate")
    assert card.n_answered == 2
    assert _value(card["mean-tiou"]) == pytest.approx(100 * (1 + 0.96) / 2)
    assert _value(card["ap-0.5-activitynet"]) == 100
    assert _value(card["ap-0.5-avdeepfake1m"]) == pytest.approx(50)  # the first of two is lost

    lines = write(tmp_path, "marked.txt", "v_a 60 1=3\nv_b 30\n")
    said = write(tmp_path, "said.txt", "v_a 60 1=2\nv_b 30\n")
    card = score(said, benchmark=lines, protocol="locate")
    assert _value(card["mean-tiou"]) == pytest.approx(50)
    assert not isinstance(card["map-activitynet"], Estimate)

    talks = write(tmp_path, "talks.json", [conversation(f"{TAGS}<answer>Fake</answer>")])
    card = score(talks, benchmark=talks, protocol="locate", prompt="tagged", box_space="permille")
    assert _value(card["category-f1"]) == pytest.approx(100)


def _value(measured: object) -> float:
    assert isinstance(measured, Estimate)
    return measured.value


def test_wrong_predictions_end_in_rejected_rows(tmp_path: Path) -> None:
    predicted = {
        "good.mp4": [[0.5, 1, 2]],
        "backwards.mp4": [[0.5, 2, 1]],
        "nan.mp4": [[float("nan"), 1, 2]],
        "sure.mp4": [[1.5, 1, 2]],
        "huge.mp4": [[0.5, 0, 1e300]],
        "late.mp4": [[0.5, 0, 1e8]],
        "many.mp4": [[0.5, 0, 1]] * 2_000,
        "odd.mp4": "none",
    }
    found = list(read_answer_file(write(tmp_path, "p.json", predicted)))
    rejected = {row.name for row in found if isinstance(row, Rejected)}
    assert rejected == set(predicted) - {"good.mp4"}
