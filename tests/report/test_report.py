"""What a report says, read back from the page that it writes."""

import base64
import gzip
import hashlib
import html
import json
import re
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.reported import accuse, ask, entry, lay_out, record, trace
from unreel.asking.answer_table import CLIP_CLOCK
from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Estimate
from unreel.evaluation.explanation_scores import ExplanationJudges, open_run_rulings
from unreel.evaluation.judge import judge_explanations
from unreel.evaluation.scoring import score_run
from unreel.report.boards.board import build_unfilled_report_board
from unreel.report.boards.ranking_panels import build_leaderboard_panel
from unreel.report.clips.clip_browser import iter_shown_frame_times
from unreel.report.clips.clip_files import FAILED, RIGHT, UNREADABLE, WRONG
from unreel.report.entrants import read_report_entrants
from unreel.report.site import write_report
from unreel.reviewers.endpoint.reviewer import EndpointReviewer
from unreel.reviewers.factory import wrap_open_reviewer

ENTRIES = [
    entry("film", group="g0", score=5),
    entry("tape", group="g1", score=4),
    entry("veo-1", "Veo", traces=[trace("object-merging")], group="g0", score=2),
    entry("veo-2", "Veo", traces=[trace("sudden-blurring", "other")], group="g1", score=1),
    entry("sora-1", "Sora", traces=[trace()], group="g1", score=3),
]
ACCUSED = {
    "film": {"text": "REAL", "input_tokens": 90, "output_tokens": 5, "latency_us": 250_000},
    "tape": accuse(box="[0, 0, 192, 128]"),
    "veo-1": accuse(),
    "veo-2": "I cannot say.",
    "sora-1": {"failure": "rate-limited", "detail": "429"},
}


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("report") / "bench", ENTRIES)


@pytest.fixture(scope="session")
def trace_run(bench: Path) -> Any:
    told = record(bench.parent / "seer.jsonl", ACCUSED)
    settings = {"protocol": "trace", "model": "recorded", "recorded": str(told)}
    return ask(bench.parent / "seer", bench, **settings)


@pytest.fixture(scope="session")
def floor_run(bench: Path) -> Any:
    return ask(bench.parent / "floor", bench, protocol="trace", model="always-generated")


def test_the_page_holds_every_panel_and_no_number_without_its_doubt(
    trace_run: Any, floor_run: Any, tmp_path: Path
) -> None:
    written = write_report([trace_run, floor_run], tmp_path / "out")
    assert (written.n_boards, written.n_entrants, written.n_clips, written.n_answers) == (
        1,
        2,
        5,
        10,
    )
    page = written.page.read_text(encoding="utf-8")
    for heading in (
        "Leaderboard",
        "Difficulty gradient",
        "By creator",
        "By category",
        "Bias",
        "Calibration",
        "Whole-frame boxes",
        "Coverage and failures",
        "Cost",
    ):
        assert f"<h3>{heading}</h3>" in page
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    assert re.search(r"recorded:seer .*? 50\.0 \s*2\.5 to 97\.5,\s+n 4", text, re.DOTALL)
    assert "not measured: no judge has scored the explanations" in text
    assert '<span class="badge kind">baseline</span>' in page
    assert '<span class="badge kind">published</span>' in page
    assert "GPT 4.1" in page


def test_every_figure_of_the_page_leads_to_its_definition(
    trace_run: Any, floor_run: Any, tmp_path: Path
) -> None:
    page = write_report([trace_run, floor_run], tmp_path / "out", media="none").page
    text = page.read_text(encoding="utf-8")
    links = set(re.findall(r'class="define" href="#([\w-]+)"', text))
    defined = re.findall(r'<div id="([\w-]+-figure-[\w-]+)"', text)
    assert sorted(defined) == sorted(links)
    assert {
        "board-0-figure-accuracy",
        "board-0-figure-label-brier",
        "board-0-figure-seconds",
    } <= links


def test_every_table_lies_beside_the_page_as_csv_and_latex(
    trace_run: Any, floor_run: Any, tmp_path: Path
) -> None:
    page = write_report([trace_run, floor_run], tmp_path / "out", media="none").page
    text = page.read_text(encoding="utf-8")
    links = re.findall(r'href="(tables/[\w.-]+)" download', text)
    of_reviewers = [
        link
        for path in (page.parent / "reviewers").iterdir()
        for link in re.findall(r'href="../(tables/[\w.-]+)" download', path.read_text())
    ]
    files = [f"tables/{path.name}" for path in (page.parent / "tables").iterdir()]
    assert sorted(links + of_reviewers) == sorted(files)
    latex = data_block(page, "report-latex")
    assert {f"tables/{name}" for name in latex} == {x for x in links if x.endswith(".tex")}
    assert len(links) == 2 * text.count("<table>") + 1
    clips = (page.parent / "tables" / "clips.csv").read_text(encoding="utf-8").splitlines()
    assert clips[0] == "Clip,Made by,recorded:seer,always-generated"
    assert clips[-1] == "sora-1,Sora,failed,right"
    assert text.count(" data-save=") == text.count(" data-chart=")
    leaders = (page.parent / "tables" / "board-0-leaderboard.csv").read_text(encoding="utf-8")
    assert "Accuracy,Accuracy, low" in leaders.replace('"', "")
    latex = (page.parent / "tables" / "board-0-leaderboard.tex").read_text(encoding="utf-8")
    assert "50.0 [2.5, 97.5]" in latex


def test_the_index_tells_right_wrong_unreadable_and_failed(
    trace_run: Any, floor_run: Any, tmp_path: Path
) -> None:
    page = write_report([trace_run, floor_run], tmp_path / "out").page
    index, details = read_back(page)
    told = {name: dict(answers) for _, name, _, _, answers in index["clips"]}
    assert told == {
        "film": {0: RIGHT, 1: WRONG},
        "tape": {0: WRONG, 1: WRONG},
        "veo-1": {0: RIGHT, 1: RIGHT},
        "veo-2": {0: UNREADABLE, 1: RIGHT},
        "sora-1": {0: FAILED, 1: RIGHT},
    }
    veo = next(each for each in details if each["clips"][0]["name"] == "veo-1")
    assert veo["answers"][0]["meets"] == [{"iou": 1.0, "late_us": 0}]
    assert (page.parent / veo["clips"][0]["src"]).read_bytes()[4:8] == b"ftyp"


def test_media_are_linked_copied_or_left_out(trace_run: Any, bench: Path, tmp_path: Path) -> None:
    for media in ("link", "copy", "none"):
        written = write_report([trace_run], tmp_path / media, media=media)
        files = sorted((tmp_path / media / "media").glob("*.mp4"))
        assert len(files) == written.n_media == (0 if media == "none" else 5)
    shared = (bench / "film.mp4").stat().st_ino
    assert shared in {path.stat().st_ino for path in (tmp_path / "link" / "media").iterdir()}
    assert shared not in {path.stat().st_ino for path in (tmp_path / "copy" / "media").iterdir()}
    again = write_report([trace_run], tmp_path / "copy", media="link")
    assert again.n_media == 5


def test_other_instruments_get_boards_of_their_own(bench: Path, tmp_path: Path) -> None:
    scores = record(
        tmp_path / "rater.jsonl", {"film": "<answer>5</answer>", "tape": "<answer>1</answer>"}
    )
    runs = [
        ask(tmp_path / "a", bench, protocol="reality", model="always-real"),
        ask(tmp_path / "b", bench, protocol="realism", model="recorded", recorded=str(scores)),
        ask(tmp_path / "c", bench, protocol="preference", model="coin"),
    ]
    written = write_report(runs, tmp_path / "out", media="none")
    assert written.n_boards == 3
    index, details = read_back(written.page)
    assert [one["protocol"] for one in index["entrants"]] == ["reality", "realism", "preference"]
    told = {name: dict(answers) for _, name, _, _, answers in index["clips"]}
    assert told["film"] == {0: RIGHT, 1: RIGHT}
    assert told["tape"][1] == WRONG
    assert sum(len(each["clips"]) == 2 for each in details) == 3
    page = written.page.read_text(encoding="utf-8")
    assert "InternVL3.5-241B-A28B" in page
    assert "Qwen3-VL-30B-A3B" in page


def test_kept_rulings_score_explanations_and_nobody_is_asked(bench: Path, tmp_path: Path) -> None:
    told = record(
        tmp_path / "seer.jsonl", {name: accuse() for name in ("veo-1", "veo-2", "sora-1")}
    )
    run = ask(tmp_path / "run", bench, protocol="trace", model="recorded", recorded=str(told))
    model = "compatible/judge@http://127.0.0.1:9/v1"

    class Judge(EndpointReviewer):
        async def answer(self, sheet: Any) -> Any:
            from unreel.core.answer import Reply

            return Reply(text="0.5")

    judge = partial(
        judge_explanations, factory=wrap_open_reviewer(Judge(model)), store=open_run_rulings(run)
    )
    score_run(run, score_texts=ExplanationJudges([judge], 0))
    before = files_of(run.place.path)
    (judged,) = read_report_entrants(run, judge=model)
    (bare,) = read_report_entrants(run)
    assert isinstance(judged.card["explanation"], Estimate)
    assert judged.card["explanation"].value == 50
    assert not isinstance(bare.card["explanation"], Estimate)
    assert files_of(run.place.path) == before


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_report_needs_a_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="unreel eval"):
        write_report([], tmp_path)


def test_a_run_that_is_named_twice_is_no_second_reviewer(trace_run: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="Name each run once"):
        write_report([trace_run, trace_run], tmp_path)


def test_a_judge_that_has_ruled_nothing_is_refused(
    trace_run: Any, floor_run: Any, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSettingError, match="unreel score RUN --judge openai/gpt-5"):
        write_report([trace_run, floor_run], tmp_path / "out", judge="openai/gpt-5")
    assert not (tmp_path / "out").exists()
    write_report([floor_run], tmp_path / "out", judge="openai/gpt-5")  # which explains nothing


def test_charts_are_valid_vega_lite(trace_run: Any, floor_run: Any, tmp_path: Path) -> None:
    altair = pytest.importorskip("altair", reason="Altair checks the charts against their schema")
    page = write_report([trace_run, floor_run], tmp_path / "out", media="none").page
    charts = data_block(page, "report-charts")
    assert len(charts) == 6  # no creator and no category has enough clips for one
    for spec in charts.values():
        altair.Chart.from_dict(spec)
    vendored = Path(write_report.__code__.co_filename).parent / "boards/static/vendor"
    version = re.search(r'"(6\.\d+)\.\d+"', (vendored / "vega-lite.min.js").read_text())
    assert version is not None
    assert altair.SCHEMA_VERSION.startswith(f"v{version[1]}.")


def test_scripts_of_others_are_the_ones_that_the_list_names() -> None:
    vendored = Path(write_report.__code__.co_filename).parent / "boards/static/vendor"
    listed = (vendored / "README.md").read_text(encoding="utf-8")
    for script in vendored.glob("*.js"):
        line = next(line for line in listed.splitlines() if line.startswith(f"| `{script.name}`"))
        assert hashlib.sha256(script.read_bytes()).hexdigest() in line
        licence = re.search(r"`(LICENSE[^`]*)`", line)
        assert licence is not None
        assert (vendored / licence[1]).is_file()


def data_block(page: Path, name: str) -> Any:
    text = page.read_text(encoding="utf-8")
    found = re.search(
        rf'<script type="application/json" id="{name}">(.*?)</script>', text, re.DOTALL
    )
    assert found is not None
    return json.loads(found[1])


def read_back(page: Path) -> tuple[Any, list[Any]]:
    """The index, and the details of all clips, as the page's own script reads them."""
    index = data_block(page, "report-index")
    n_chunks = -(-len(index["clips"]) // index["chunk"])
    packed = [data_block(page, f"report-clips-{n}") for n in range(n_chunks)]
    return index, [
        one for chunk in packed for one in json.loads(gzip.decompress(base64.b64decode(chunk)))
    ]


def test_frames_shown_count_from_the_first_frame(trace_run: Any) -> None:
    (entrant,) = read_report_entrants(trace_run)
    item = entrant.items[0]
    (subject,) = item.subjects
    video = replace(subject.clip.facts.video, first_at_s=Fraction(7))
    clip = replace(subject.clip, facts=replace(subject.clip.facts, video=video))
    late = replace(item, subjects=(replace(subject, clip=clip),))
    notes = {"box_space": "pixel", "clock": CLIP_CLOCK, "frames": [[[0, "0"], [12, "1/2"]]]}
    for asked in (late, item):
        noted = replace(asked, stored={**item.stored, "notes": json.dumps(notes)})
        assert list(iter_shown_frame_times(noted)) == [[0, 500_000]]


def test_a_broken_reviewer_changes_nobodys_place_and_has_no_rank(
    bench: Path, tmp_path: Path
) -> None:
    """Whatever ranks is chosen by the instrument: nobody on the board can change it."""
    right = {"film": "1", "tape": "1", "veo-1": "0", "veo-2": "0", "sora-1": "0"}
    wrong_about = {"best": set(), "middle": {"veo-2"}, "last": {"film", "tape", "veo-1"}}
    runs = []
    for name, wrong in wrong_about.items():
        said = {c: f"<answer>{1 - int(a) if c in wrong else a}</answer>" for c, a in right.items()}
        told = record(tmp_path / f"{name}.jsonl", said)
        settings = {"protocol": "reality", "model": "recorded", "recorded": str(told)}
        runs.append(ask(tmp_path / name, bench, **settings))
    runs += [
        ask(tmp_path / floor, bench, protocol="reality", model=floor)
        for floor in ("coin", "always-generated")
    ]
    unreadable = {clip: f"<answer>{a}</answer>" for clip, a in right.items()} | {"sora-1": "Hm."}
    settings = {"protocol": "reality", "model": "recorded"}
    told = record(tmp_path / "broken.jsonl", unreadable)
    broken = ask(tmp_path / "broken", bench, recorded=str(told), **settings)

    before, after = ranks(runs), ranks([*runs, broken])
    assert [row for row in after if row[1] != "recorded:broken"] == before
    assert ("", "recorded:broken") in after
    assert before[0] == ("1", "recorded:best")


def ranks(runs: list[Any]) -> list[tuple[str, str]]:
    entrants = [entrant for run in runs for entrant in read_report_entrants(run)]
    board = build_unfilled_report_board(entrants, range(len(entrants)), number=1)
    (table,) = build_leaderboard_panel(board).tables
    return [(line.cells[0].text, line.cells[1].text) for line in table.lines]
