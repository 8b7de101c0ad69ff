"""From a season that was played to its pages, by one command."""

import csv
import json
from email.message import Message
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from arena.seasons import N_SCENES, Stadium, write_benchmark, write_clips
from chat import Reply, says, serve_chat
from unreel.cli.main import unreel
from unreel.core.errors import UnreelError
from unreel.report.season.page_data import get_entrant_page_name

WAN = get_entrant_page_name("creator", "Wan/image+text")
ANN = get_entrant_page_name("reviewer", "Ann")


@pytest.fixture(scope="module")
def stadium(tmp_path_factory: pytest.TempPathFactory) -> Stadium:
    """A season of two creators before one reviewer and the floors; real clips may be handed on."""
    root = tmp_path_factory.mktemp("played")
    bench = write_benchmark(root / "bench")
    table = bench / "metadata.jsonl"
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    for row in rows:
        row["licence"] = "CC BY 4.0" if row["label"] == "real" else "all rights reserved"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_clips(root / "wan")
    (root / "wan" / f"scene-{N_SCENES - 1}.mp4").unlink()
    said = [{"name": row["name"], "text": "It moves oddly. <answer>1</answer>"} for row in rows]
    said += [
        {"name": f"Wan/image+text/scene-{n}", "text": "A fine film. <answer>1</answer>"}
        for n in range(N_SCENES - 1)
    ]
    (root / "said.jsonl").write_text("".join(json.dumps(line) + "\n" for line in said))
    played = Stadium(
        root,
        creators=[
            {"name": "Wan", "kind": "folder", "folder": "wan"},
            {"name": "Sora", "kind": "frozen"},
        ],
        reviewers=[{"model": "recorded", "recorded": "said.jsonl", "title": "Ann"}],
        sections={"budget": {"max_questions": 1000}},
    )
    played.play()
    return played


def show(stadium: Stadium, out: Path, *more: str) -> Path:
    """The pages by the command, quickly."""
    words = ["arena", "site", str(stadium.folder.path), "--out", str(out), "--resamples", "100"]
    told = CliRunner().invoke(unreel, [*words, *more])
    assert told.exit_code == 0, (told.output, told.exception)
    return out


def test_a_played_season_becomes_pages_with_its_reasons_costs_and_gaps(
    stadium: Stadium, tmp_path: Path
) -> None:
    out = show(stadium, tmp_path / "site")
    page = (out / "index.html").read_text()
    assert stadium.folder.entrants().digest in page
    assert "1,000" in page
    with (out / "tables" / "c0-reviewers.csv").open(encoding="utf-8", newline="") as file:
        board = {row["Reviewer"]: row for row in csv.DictReader(file)}
    assert {"Ann", "coin"} <= set(board)
    with (out / "tables" / f"{WAN}-made.csv").open(encoding="utf-8", newline="") as file:
        made = list(csv.DictReader(file))
    assert len(made) == N_SCENES
    assert made[-1]["Never made, because"]
    assert made[0]["SHA-256"]
    mistakes = (out / "entrants" / f"{ANN}.html").read_text()
    assert "It moves oddly." in mistakes or "A fine film." in mistakes


def test_clips_lie_beside_the_pages_only_where_their_licence_or_a_person_allows_it(
    stadium: Stadium, tmp_path: Path
) -> None:
    licensed = show(stadium, tmp_path / "licensed")
    assert len(list((licensed / "media").iterdir())) == N_SCENES  # the real ones
    assert '"clip-' not in (licensed / "entrants" / f"{WAN}.html").read_text()
    linked = show(stadium, tmp_path / "linked", "--media", "link")
    assert len(list((linked / "media").iterdir())) == 3 * N_SCENES - 1
    assert '"clip-' in (linked / "entrants" / f"{WAN}.html").read_text()
    bare = show(stadium, tmp_path / "bare", "--media", "none")
    assert not (bare / "media").exists()


def test_what_cannot_be_shown_is_said_with_what_to_do(tmp_path: Path) -> None:
    words = [str(tmp_path / "nowhere.toml"), "--out", str(tmp_path)]
    told = CliRunner().invoke(unreel, ["arena", "site", *words])
    assert isinstance(told.exception, UnreelError)
    assert "nowhere.toml" in str(told.exception)


def test_a_creator_that_was_taken_out_keeps_its_row_without_a_rank(
    stadium: Stadium, tmp_path: Path
) -> None:
    kept = list(stadium.creators)
    stadium.creators = [creator for creator in kept if creator["name"] != "Sora"]
    try:
        stadium.play()
        out = show(stadium, tmp_path / "site")
    finally:
        stadium.creators = kept
        stadium.play()
    with (out / "tables" / "c0-creators.csv").open(encoding="utf-8", newline="") as file:
        board = {row["Creator"]: row for row in csv.DictReader(file)}
    assert (board["Wan/image+text"]["#"], board["Sora"]["#"]) == ("1", "")
    assert float(board["Sora"]["Fakeness"]) >= 0
    assert "Sora (removed)" in (out / "tables" / "c0-creators.tex").read_text()
    assert "Removed from the season; their results stay: Sora." in (out / "index.html").read_text()


def test_a_season_of_pairs_has_its_boards_and_tells_of_no_clip(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "bench", n_scenes=6)
    said = [
        {"name": " | ".join(names[::way]), "text": str(1 + names[::way].index(names[n % 2]))}
        for n in range(6)
        for maker in ("Veo", "Sora")
        for names in [[f"real-{n}", f"{maker}-{n}"]]
        for way in (1, -1)
    ]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(line) + "\n" for line in said))
    stadium = Stadium(
        tmp_path,
        creators=[{"name": name, "kind": "frozen"} for name in ("Veo", "Sora")],
        reviewers=[{"model": "recorded", "recorded": "said.jsonl", "title": "Ann"}],
        head={"floors": False, "protocol": "preference"},
    )
    stadium.play()
    out = show(stadium, tmp_path / "site")
    with (out / "tables" / "c0-creators.csv").open(encoding="utf-8", newline="") as file:
        board = list(csv.DictReader(file))
    assert {row["Creator"] for row in board} == {"Veo", "Sora"}
    assert all(row["Strength"] for row in board)
    assert not (out / "tables" / "c0-matrix.csv").exists()
    page = (out / "index.html").read_text()
    assert "chosen as real" in page
    assert "scene-1" not in page


def test_no_page_file_or_json_of_a_site_holds_the_address_of_a_server(
    stadium: Stadium, tmp_path: Path
) -> None:
    def reply(_body: bytes, _headers: Message) -> Reply:
        return says("It moves oddly. <answer>1</answer>")

    (tmp_path / "bench").symlink_to(stadium.root / "bench")
    with serve_chat(reply) as port, serve_chat(reply) as other:
        models = [f"vllm/good@http://127.0.0.1:{each}/v1" for each in (port, other)]
        season = Stadium(
            tmp_path,
            creators=[{"name": "Sora", "kind": "frozen"}],
            reviewers=[{"model": model} for model in models],
            head={"floors": False},
        )
        outcome = season.play()
        again = season.play()
    assert [turn.done for turn in outcome.reviewers] == [2 * N_SCENES] * 2
    assert [turn.already for turn in again.reviewers] == [2 * N_SCENES] * 2
    out = show(season, tmp_path / "site")
    board = json.loads((out / "standings.json").read_text())["conditions"][0]["reviewers"]
    assert sorted(row["name"] for row in board) == ["vllm/good", "vllm/good 2"]
    entrants = season.folder.path / "entrants.json"
    old = entrants.read_text().replace('"title": "vllm/good"', f'"title": "{models[0]}"', 1)
    entrants.write_text(old)  # as earlier releases wrote it
    out = show(season, tmp_path / "older")
    for file in (*(tmp_path / "site").rglob("*"), *out.rglob("*")):
        text = file.read_bytes().decode(errors="replace") if file.is_file() else ""
        for secret in ("127.0.0.1", "127-0-0-1", str(port), str(other)):
            assert secret not in file.name
        assert "127.0.0.1" not in text, file
    for run in (season.folder.path / "runs").iterdir():
        assert "127" not in run.name
