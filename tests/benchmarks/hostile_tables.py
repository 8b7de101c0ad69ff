"""Tables that strangers could send, made small and meant to become large."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="needs the extra eval")
pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra eval")

GIB = 1 << 30
Make = Callable[[Path], Path]


def _sparse(name: str, start: bytes) -> Make:
    """A file of six gigabytes that takes up a few blocks of the disk."""

    def make(folder: Path) -> Path:
        path = folder / name
        with path.open("wb") as file:
            file.write(start)
            file.truncate(6 * GIB)
        return path

    return make


def _text(name: str, text: Callable[[], bytes]) -> Make:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(text())
        return folder / name

    return make


def _parquet(table: Callable[[], Any], **writing: Any) -> Make:
    def make(folder: Path) -> Path:
        path = folder / "manifest.parquet"
        pq.write_table(table(), path, **writing)
        return path

    return make


def _dictionary(text: str, n: int) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([text]))


def _labelled(**columns: Any) -> Any:
    n = len(next(iter(columns.values())))
    return pa.table({"file": _dictionary("a.mp4", n), "label": _dictionary("real", n), **columns})


def _lists(values: Any) -> Any:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def _strings(text: str, n: int) -> Any:
    return pa.array([text] * n)


def _bad_utf8() -> Any:
    raw = pa.array([b"\xff\xfe", b"fine"]).view(pa.string())
    return _labelled(prompt=raw)


def _edited(edit: Callable[[bytearray], None]) -> Make:
    """A sound Parquet file in which some bytes were changed."""

    def make(folder: Path) -> Path:
        path = folder / "manifest.parquet"
        n = 500
        prompts = pa.array([f"a prompt {number % 7} of some length" for number in range(n)])
        pq.write_table(_labelled(prompt=prompts), path, compression="zstd")
        data = bytearray(path.read_bytes())
        edit(data)
        path.write_bytes(data)
        return path

    return make


def _cut(data: bytearray) -> None:
    del data[len(data) // 2 :]


def _long_footer(data: bytearray) -> None:
    data[-8:-4] = (2**31 - 1).to_bytes(4, "little")


def _flip(seed: int) -> Callable[[bytearray], None]:
    def edit(data: bytearray) -> None:
        chosen = random.Random(seed)
        for _ in range(1 + seed % 6):
            data[chosen.randrange(4, len(data) - 4)] = chosen.randrange(256)

    return edit


ROW = b'{"file": "a.mp4", "label": "real"'
BOMBS: dict[str, Make] = {
    "parquet: one long string for 200,000 rows": _parquet(
        lambda: _labelled(prompt=_dictionary("x" * (4 << 20), 200_000)), compression="zstd"
    ),
    "parquet: ten strings of a megabyte for 100,000 rows": _parquet(
        lambda: _labelled(
            **{f"c{n}": _dictionary(chr(97 + n) * (1 << 20), 100_000) for n in range(10)}
        ),
        compression="zstd",
    ),
    "parquet: a page of 20 MiB": _parquet(
        lambda: _labelled(prompt=_strings("x" * (20 << 20), 1)),
        compression="zstd",
        use_dictionary=False,
    ),
    "parquet: pages of 5 MiB for each row": _parquet(
        lambda: _labelled(prompt=_strings("x" * (5 << 20), 20)),
        compression="zstd",
        use_dictionary=False,
    ),
    "parquet: five million numbers in one cell": _parquet(
        lambda: _labelled(votes=_lists(pa.array([0] * 5_000_000, pa.int8())))
    ),
    "parquet: a million long strings in one cell": _parquet(
        lambda: _labelled(votes=_lists(_dictionary("x" * (1 << 20), 1_000_000)))
    ),
    "parquet: strings that repeat the one before": _parquet(
        lambda: _labelled(prompt=_strings("x" * (1 << 20), 60)),
        use_dictionary=False,
        column_encoding={"file": "PLAIN", "label": "PLAIN", "prompt": "DELTA_BYTE_ARRAY"},
    ),
    "parquet: more rows than are taken": _parquet(
        lambda: pa.table(
            {"file": pa.nulls(20_000_000, pa.string()), "label": pa.nulls(20_000_000, pa.string())}
        )
    ),
    "parquet: a footer that claims two gigabytes": _edited(_long_footer),
    "parquet: half of it": _edited(_cut),
    "parquet: twenty thousand columns": _parquet(
        lambda: pa.table({f"c{n}": [n] for n in range(20_000)})
    ),
    "parquet: text that is no text": _parquet(_bad_utf8),
    "csv: six gigabytes on one line": _sparse("manifest.csv", b"file,label\na.mp4,real\n"),
    "csv: six gigabytes of header": _sparse("manifest.csv", b"file,label"),
    "csv: one row over all lines": _text(
        "manifest.csv", lambda: b'file,label\n"\n' + b'","\n' * 8_000_000
    ),
    "csv: an open quote": _text("manifest.csv", lambda: b'file,label\n"' + b"x\n" * 8_000_000),
    "csv: a header of commas": _text("manifest.csv", lambda: b"file,label" + b"," * 3_900_000),
    "csv: a row of commas": _text(
        "manifest.csv", lambda: b"file,label\n" + (b"," * 3_900_000 + b"\n") * 8
    ),
    "csv: blank lines": _text("manifest.csv", lambda: b"file,label\n" + b"\n" * 50_000_000),
    "csv: rows of nothing": _text("manifest.csv", lambda: b"file,label\n" + b"x\n" * 2_100_000),
    "jsonl: six gigabytes on one line": _sparse("manifest.jsonl", ROW + b"}\n"),
    "jsonl: a line of brackets": _text(
        "manifest.jsonl", lambda: ROW + b', "traces": [' + b"[]," * 1_300_000 + b"[]]}\n"
    ),
    "jsonl: a line of wrong traces": _text(
        "manifest.jsonl", lambda: ROW + b', "traces": [' + b"{}," * 1_300_000 + b"{}]}\n"
    ),
    "jsonl: a track of wrong boxes": _text(
        "manifest.jsonl",
        lambda: (
            ROW
            + b', "traces": [{"span": {"start_us": 0, "end_us": 1}, "track": ['
            + b"{}," * 1_300_000
            + b"{}]}]}\n"
        ),
    ),
    "jsonl: nested without end": _text(
        "manifest.jsonl", lambda: ROW + b', "prompt": ' + b"[" * 1_000_000 + b"\n"
    ),
    "jsonl: numbers without end": _text(
        "manifest.jsonl", lambda: ROW + b', "width": ' + b"9" * 1_000_000 + b"}\n"
    ),
    "jsonl: blank lines": _text("manifest.jsonl", lambda: b"\n" * 50_000_000),
    "json: six gigabytes": _sparse("all_data.json", b"["),
    "json: brackets": _text("all_data.json", lambda: b"[" + b"[]," * 20_000_000 + b"[]]"),
    "json: one row of brackets": _text(
        "all_data.json", lambda: b"[[" + b"[]," * 20_000_000 + b"[]]]"
    ),
    "json: nested without end": _text("all_data.json", lambda: b"[" * 10_000_000),
    "json: many small rows": _text("all_data.json", lambda: b"[" + b"{}," * 200_000 + b"{}]"),
}


def mutants(n: int) -> Iterator[tuple[str, Make]]:
    """Sound Parquet files with a few wrong bytes."""
    for seed in range(n):
        yield f"parquet: mutant {seed}", _edited(_flip(seed))


def write_million(path: Path) -> None:
    """A table of a million clips, as somebody would really have it."""
    with path.open("w", encoding="utf-8") as file:
        file.write("file,label,creator,prompt,width,height,frame_rate,duration_s\n")
        for number in range(1_000_000):
            prompt = f"A person number {number} walks through a town in the rain"
            file.write(f'clips/{number:07d}.mp4,fake,Veo,"{prompt}",1280,720,24,5.0\n')
