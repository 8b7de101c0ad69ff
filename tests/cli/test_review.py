"""`unreel review`, as a person runs it."""

import contextlib
import json
import os
import pty
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from email.message import Message

import pytest

from chat import Reply, says, serve_chat
from pace import slowness
from pdf import words_of
from unreel.report.review.browser_pdf import find_chromium_browser, print_page_as_pdf

FAKE = (
    "FAKE <coordinates>[48, 32, 96, 64]</coordinates> <start_time>0.5</start_time> "
    "<explanation>it \u001b[31mbends</explanation>"
)


class Oracle:
    """A chat server on loopback; it knows when it was last asked, and when its answer went."""

    def __init__(self) -> None:
        self.text, self.wait_s, self.asked_s, self.answered_s = FAKE, 0.0, 0.0, 0.0
        self.n_pictures: list[int] = []

    @property
    def model(self) -> str:
        return f"compatible/tiny@http://127.0.0.1:{self.port}/v1"

    def reply(self, body: bytes, _: Message) -> Reply:
        self.asked_s = time.monotonic()
        content = json.loads(body)["messages"][-1]["content"]
        self.n_pictures.append(sum(part["type"] == "image_url" for part in content))
        time.sleep(self.wait_s)
        answer = says(self.text, prompt_tokens=1000, completion_tokens=100)
        self.answered_s = time.monotonic()
        return answer


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    state = Oracle()
    with serve_chat(state.reply) as state.port:
        yield state


def test_without_a_model_the_file_is_examined_and_the_page_says_so(run, clip, tmp_path) -> None:
    done = run("review", clip, "--out", tmp_path / "evidence")
    assert done.returncode == 0, done.stderr
    assert "No model looked at the picture: only the file was examined." in done.stdout
    assert "Findings in the file itself" in done.stdout
    assert "Verdicts" not in done.stdout
    assert "cannot tell whether its picture was generated" in done.stderr
    assert "--model" in done.stderr.splitlines()[-1]
    page = (tmp_path / "evidence" / "evidence.html").read_text(encoding="utf-8")
    assert "No model looked at the picture" in page
    assert "Reviewers are AI models" not in page
    result = json.loads((tmp_path / "evidence" / "result.json").read_text(encoding="utf-8"))
    assert (result["opinions"], result["attention"]) == ([], "none")


def test_a_model_is_asked_and_its_answer_shown(run, clip, oracle) -> None:
    done = run("review", clip, "--model", oracle.model, "--protocol", "trace", "--nframe", 3)
    assert done.returncode == 0, done.stderr
    assert "compatible/tiny" in done.stdout
    assert "generated" in done.stdout
    assert "0.50 s" in done.stdout
    assert "25% to 50% across" in done.stdout
    assert "3 frames sent" in done.stdout
    assert "1000 + 100 tokens" in done.stdout
    assert "\u2503" in done.stdout  # where the fault begins on the timeline
    first = done.stdout.splitlines()[0]
    assert (
        first
        == "clip.mp4: The AI model compatible/tiny says this clip looks AI-generated, from 0.50 s."
    )
    assert "Measured accuracy: not known." in done.stdout
    assert "\u001b" not in done.stdout
    assert "not forensic proof" in done.stderr
    assert oracle.n_pictures == [3]


def test_nonsense_is_shown_as_a_failure_with_its_text(run, clip, oracle) -> None:
    oracle.text = "zq \u001b[2J zq"
    done = run("review", clip, "--model", oracle.model, "--protocol", "trace", "--trusted")
    assert done.returncode == 1
    assert "no verdict" in done.stdout
    assert "could not be read" in done.stdout
    assert "| zq \ufffd[2J zq" in done.stdout
    assert "generated" not in done.stdout


def test_a_silent_server_is_a_failure_and_the_other_reviewer_is_heard(run, clip) -> None:
    gone = ("--model", "compatible/gone@http://127.0.0.1:9/v1", "--deadline", 2)
    done = run(
        "review", clip, *gone, "--model", "always-real", "--protocol", "reality", "--trusted"
    )
    assert done.returncode == 1
    assert "no answer" in done.stdout
    assert "connection-lost" in done.stdout
    assert "agreement, reality: real by 1 of 2, no verdict by 1 of 2" in done.stdout


def test_evidence_is_written_for_each_clip(run, clip, tmp_path) -> None:
    other = tmp_path / "other.mp4"
    other.write_bytes(clip.read_bytes())
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no clip")
    done = run(
        "review", clip, broken, other, "--model", "coin", "--protocol", "reality", "--out", "e"
    )
    assert done.returncode == 1
    assert "broken.mp4" in done.stderr
    pages = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("evidence.html"))
    assert [page.parent.name for page in pages] == ["001-clip", "003-other"]
    assert "index in e/index.html" in done.stderr


def test_a_folder_is_reviewed_with_one_index_and_links_are_counted(run, clip, tmp_path) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.mp4", "sub/a.mp4"):
        (folder / name).write_bytes(clip.read_bytes())
    (folder / "out.mp4").symlink_to(clip)
    (folder / "notes.txt").write_text("no clip", encoding="utf-8")
    asked = ("review", "in", "--model", "always-real", "--protocol", "reality", "--trusted")
    for _ in range(2):  # the second time the folder also holds the first evidence
        done = run(*asked, "--out", "in/evidence", "--json")
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        assert [row["file"] for row in document["clips"]] == ["in/a.mp4", "in/sub/a.mp4"]
        assert {row["attention"] for row in document["clips"]} == {"none"}
        assert document["skipped_links"] == 1
    html = (folder / "evidence" / "index.html").read_text(encoding="utf-8")
    assert "1 symbolic link was skipped." in html
    assert "None of 2 clips needs attention" in html
    assert '<a href="002-a/evidence.html">in/sub/a.mp4</a>' in html
    assert (folder / "evidence" / "002-a" / "evidence.html").is_file()

    (tmp_path / "empty").mkdir()
    empty = run("review", "empty", "--model", "coin")
    assert empty.returncode == 2
    assert "no video is in this folder" in empty.stderr


def test_the_sample_needs_nothing_and_says_that_it_is_recorded(run, tmp_path) -> None:
    done = run("review", "--sample", "--out", "sample", "--json")
    assert done.returncode == 0, done.stderr
    assert "the answers are recorded" in done.stderr
    document = json.loads(done.stdout)
    assert "no model was queried" in document["note"]
    (row,) = document["clips"]
    assert {one["headline"] for one in row["opinions"]} >= {"generated", "real"}
    html = (tmp_path / "sample" / "evidence.html").read_text(encoding="utf-8")
    assert "no model was queried" in html
    assert [still["frame"] for still in row["evidence"]["stills"]] == [48, 72]
    assert "frames of annotated.mp4: " in done.stderr
    assert done.stderr.index("evidence in ") < done.stderr.index("frames of annotated.mp4: ")
    assert "stability" not in row
    assert (tmp_path / "sample" / "annotated.mp4").stat().st_size > 50_000
    result = json.loads((tmp_path / "sample" / "result.json").read_text(encoding="utf-8"))
    assert {name: result[name] for name in row if name != "evidence"} == {
        name: value for name, value in row.items() if name != "evidence"
    }


def test_a_perturbed_review_tells_the_cost_first_and_whose_verdict_turns(
    run, clip, tmp_path
) -> None:
    said = tmp_path / "said.jsonl"
    texts = {"clip.mp4": "REAL", "clip+recompressed.mp4": "REAL", "clip+cropped.mp4": FAKE}
    said.write_text(
        "".join(json.dumps({"clip": c, "text": text}) + "\n" for c, text in texts.items())
    )
    asked = ("review", clip, "--model", "recorded", "--recorded", said, "--protocol", "trace")
    done = run(*asked, "--perturb", "--out", "e", "--json")
    assert done.returncode == 1  # nobody recorded what is said of the scaled clip
    first = "asks 4 questions: 1 about the named clips, and each again after recompression"
    assert first in done.stderr
    assert "asks again, scaled: width 96, height 64, rate 30000/1001, crf 14" in done.stderr
    (row,) = json.loads(done.stdout)["clips"]
    (found,) = row["stability"]
    assert (found["reviewer"], found["state"]) == ("recorded:said", "unsure")
    flips = {retrial["variant"]: retrial["flips"] for retrial in found["retrials"]}
    assert flips == {"recompressed": False, "scaled": None, "cropped": True}
    assert "not-recorded" in found["retrials"][1]["problem"]
    html = (tmp_path / "e" / "evidence.html").read_text(encoding="utf-8")
    assert "Unsure: the verdict changes when the clip is cropped." in html


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "unreel review --sample"),
        (["--sample", "--perturb"], "recorded only for its own clip"),
        (["annotated.mp4", "--model", "coin", "--out", "."], "a clip in it would be overwritten"),
        (
            ["evidence-clip.mp4", "--model", "coin", "--out", "."],
            "a clip in it would be overwritten",
        ),
        (["x.mp4", "--perturb"], "no model is named to ask again"),
        (["--sample", "x.mp4"], "brings its own clip"),
        (["x.mp4", "--model", "metadata"], "learns from a benchmark"),
        (["x.mp4", "--model", "nobody"], "no reviewer is named"),
        (["x.mp4", "--model", "coin", "--condition", "sampling"], "NAME=VALUE"),
        (["x.mp4", "--model", "coin", "--nframe", "2", "--fps", "2"], "cannot be combined"),
    ],
)
def test_what_is_asked_wrongly_ends_with_status_2(run, arguments, told) -> None:
    done = run("review", *arguments)
    assert done.returncode == 2, done.stdout
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.alone
def test_the_answer_is_on_the_screen_within_a_second(clip, oracle, stalls) -> None:
    oracle.wait_s = 1.5
    command = [sys.executable, "-c", "from unreel.cli.main import main; main()"]
    command += ["review", str(clip), "--model", oracle.model, "--protocol", "trace"]
    late_s = []
    for _ in range(3):
        stalled_s = stalls.seconds()
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            lines = iter(process.stderr or ())
            shown_s = next(time.monotonic() for line in lines if "trace: generated" in line)
            process.communicate(timeout=120)
        late_s.append(shown_s - oracle.answered_s - (stalls.seconds() - stalled_s))
        if late_s[-1] < slowness():
            return
    pytest.fail(f"on the screen after {late_s} s")


def test_on_a_terminal_a_slow_model_is_waited_for_with_a_line(clip, oracle) -> None:
    oracle.wait_s = 2.5
    terminal, theirs = pty.openpty()
    command = [
        sys.executable,
        "-c",
        "from unreel.cli.main import main; main()",
        "review",
        str(clip),
    ]
    command += ["--model", oracle.model, "--protocol", "trace", "--trusted"]
    shown, line_s = b"", 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        with contextlib.suppress(OSError):  # how a terminal tells its end
            while piece := os.read(terminal, 4096):
                shown += piece
                if not line_s and b"waiting for compatible/tiny" in shown:
                    line_s = time.monotonic()
    os.close(terminal)
    assert process.returncode == 0, shown
    assert 0 < line_s < oracle.answered_s
    assert b"waiting for compatible/tiny, 1 s" in shown


@pytest.mark.alone
@pytest.mark.parametrize(("typed", "limit_s"), [("--help", 1.5), ("recorded", 6.0)])
def test_a_review_is_light(clip, tmp_path, typed, limit_s) -> None:
    """Processor time of all its processes; a table, a client or a model would cost more to load."""
    said = tmp_path / "said.jsonl"
    said.write_text(json.dumps({"clip": "clip.mp4", "text": "REAL"}) + "\n")
    asked = [str(clip), "--model", "recorded", "--recorded", str(said), "--protocol", "trace"]
    command = [sys.executable, "-c", "from unreel.cli.main import main; main()", "review"]
    took_s = []
    for _ in range(3):  # the first call may compile what it imports
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*command, *(asked if typed == "recorded" else [typed])],
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if took_s[-1] < limit_s * slowness():
            return
    pytest.fail(f"took {took_s} s of processor")


def test_the_page_is_printed_as_pdf(run, tmp_path) -> None:
    if find_chromium_browser() is None:
        pytest.skip("no Chromium is installed")
    done = run("review", "--sample", "--out", "e", "--pdf", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["clips"]
    assert row["evidence"]["pdf"] == "e/evidence.pdf"
    printed = (tmp_path / "e" / "evidence.pdf").read_bytes()
    assert "1of2reviewerssaysthiscliplooksAI-generated,from3.00s" in words_of(printed)


def test_without_a_browser_a_pdf_is_refused_before_anything_is_asked(
    run, clip, oracle, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("review", clip, "--model", oracle.model, "--out", "e", "--pdf")
    assert done.returncode == 2
    assert "no Chromium, Chrome or Edge is installed here" in done.stderr
    assert "print evidence.html from any browser" in done.stderr
    assert oracle.n_pictures == []


def test_a_browser_that_fails_costs_the_pdf_alone(tmp_path) -> None:
    page = tmp_path / "evidence.html"
    page.write_text("<p>", encoding="utf-8")
    assert print_page_as_pdf(page, browser="false").startswith("false did not print it")
    assert print_page_as_pdf(page, browser="true") == "true did not print it"
    assert not (tmp_path / "evidence.pdf").exists()
