"""Writes answers whose counts are those behind Video Reality Test's tables 3, 4, 5 and 16; no clip is needed.

    python docs/examples/vrt_answers.py FOLDER

Each table gets a folder: `clips.csv` with the truth in the paper's layout (CREATOR/SETTING/CLIP), and the
answers of each reviewer, or people's votes. Where the paper prints no counts, the whole numbers that give
the printed percentage stand in.
"""

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from unreel.benchmarks.published.printed_tables import (
    COUNT_TABLES,
    RealAndGeneratedAnswerCounts,
    read_printed_count_tables,
    read_printed_creator_lines,
    read_printed_human_answer_counts,
    read_published_table,
    round_to_two_places,
)

REAL = "real"
SAID = {True: "<answer>0</answer>", False: "<answer>1</answer>"}
UNREADABLE = "It is hard to say."
MAKERS = {
    "wan_without_text": "wan/without_text",
    "wan_with_text": "wan/with_text",
    "opensora_without_text": "opensora/without_text",
    "opensora_with_text": "opensora/with_text",
}
"""Columns of tables 4 and 5, and the folder of their clips."""
N_THINK, N_PAIRS = 49, 48


def behind(percent: str) -> RealAndGeneratedAnswerCounts | None:
    """The largest whole counts up to 100 that print as `percent` of two places."""
    for valid in range(100, 0, -1):
        said = round(Fraction(percent) * valid / 100)
        if round_to_two_places(Fraction(100 * said, valid)) == Decimal(percent):
            return RealAndGeneratedAnswerCounts(valid=valid, said_fake=said)
    return None


def write_creators(folder: Path) -> None:
    """Table 3: four reviewers on every creator and setting."""
    counted = read_printed_count_tables()
    settings = {
        f"{r['creator']} {r['setting']}": r for r in read_published_table("reality_creators").rows
    }
    makers = {line: f"{row['creator']}/{row['setting']}" for line, row in settings.items()}
    write_clips(folder, dict.fromkeys(makers.values(), 100), n_real=0)
    for reviewer in read_printed_creator_lines()[0].cells:
        counts = counted[COUNT_TABLES[reviewer]]
        found = {
            makers[line.name]: counts.get(line.name) or behind(str(line.cells[reviewer]))
            for line in read_printed_creator_lines()
        }
        texts = (
            (f"{maker}/c{n:03}", SAID[n < count.said_fake] if n < count.valid else UNREADABLE)
            for maker, count in found.items()
            if count is not None
            for n in range(100)
        )
        write_answers(folder / f"{reviewer}.jsonl", texts)


def write_think(folder: Path) -> None:
    """Table 4: real clips and two settings of two creators, with thoughts and without."""
    write_clips(folder, dict.fromkeys(MAKERS.values(), N_THINK), n_real=N_THINK)
    for row in read_published_table("reality_think").rows:
        caught = {maker: row[column] for column, maker in MAKERS.items()}
        caught[REAL] = str(100 - Decimal(row["real"]))
        texts = (
            (f"{maker}/c{n:03}", SAID[n < round(Fraction(percent) * N_THINK / 100)])
            for maker, percent in caught.items()
            for n in range(N_THINK)
        )
        prompt = "paper" if row["think"] == "1" else "direct"
        write_answers(folder / f"{row['reviewer']}.{prompt}.jsonl", texts)


def write_preference(folder: Path) -> None:
    """Table 5: pairs, the real clip always first or in turns."""
    write_clips(folder, dict.fromkeys(MAKERS.values(), N_PAIRS), n_real=N_PAIRS)
    for row in read_published_table("reality_preference").rows:
        prompt = "reasoning" if row["think"] == "1" else "paper"
        texts = []
        for column, maker in MAKERS.items():
            right = round(Fraction(row[column]) * N_PAIRS / 100)
            for n in range(N_PAIRS):
                turned = row["pairing"] == "pair shuffle" and n % 2
                pair = [f"{REAL}/c{n:03}", f"{maker}/c{n:03}"]
                said = 1 if (n < right) != bool(turned) else 2
                tagged = f"<think>It moves.</think><answer>{said}</answer>"
                name = " | ".join(reversed(pair) if turned else pair)
                texts.append((name, tagged if prompt == "reasoning" else str(said)))
        write_answers(folder / f"{row['pairing'].replace(' ', '-')}.{prompt}.jsonl", texts)


def write_humans(folder: Path) -> None:
    """Table 16: two people who say what the table counts, and one who takes everything for real."""
    rows = read_printed_human_answer_counts()
    write_clips(folder, {row.creator: row.n_fake for row in rows}, n_real=rows[0].n_real)
    fake = {row.creator: (row.n_fake, row.fake_correct) for row in rows}
    fake[REAL] = (rows[0].n_real, rows[0].n_real - rows[0].real_correct)
    with (folder / "votes.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "voter", "label"])
        for maker, (total, said_fake) in fake.items():
            for n in range(total):
                label = "fake" if n < said_fake else "real"
                for voter, said in (("first", label), ("second", label), ("third", "real")):
                    writer.writerow([f"{maker}/c{n:03}", voter, said])


def write_clips(folder: Path, makers: Mapping[str, int], *, n_real: int) -> None:
    """The truth: a line for each clip, of which no file need exist."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "clips.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "file", "label", "creator", "setting", "group"])
        writer.writerows(clips(REAL, n_real, "real"))
        for maker, n in makers.items():
            writer.writerows(clips(maker, n, "generated"))


def clips(maker: str, n: int, label: str) -> Iterator[list[str]]:
    """The lines of `n` clips, each with a scene that other makers show too."""
    creator, _, setting = ("", "", "") if label == "real" else maker.partition("/")
    for i in range(n):
        name = f"{maker}/c{i:03}"
        yield [name, f"{name}.mp4", label, creator, setting, f"c{i:03}"]


def write_answers(path: Path, texts: Iterable[tuple[str, str]]) -> None:
    """A line for each answer."""
    lines = (json.dumps({"name": name, "text": text}) + "\n" for name, text in texts)
    path.write_text("".join(lines), encoding="utf-8")


def write_all(folder: Path) -> None:
    """A folder for each table."""
    write_creators(folder / "table3")
    write_think(folder / "table4")
    write_preference(folder / "table5")
    write_humans(folder / "table16")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
