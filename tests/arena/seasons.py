"""Small seasons that can be played in seconds: a benchmark of tiny clips, creators in folders, and a recipe."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synthesise import ClipRecipe, synthesise
from unreel.arena.run.job import SeasonJob, run_season
from unreel.arena.run.outcome import SeasonOutcome
from unreel.arena.season.folder import SeasonFolder, read_season, resolve_season_folder
from unreel.arena.season.scenes import open_season_benchmark
from unreel.asking.answer_table import ANSWERS
from unreel.core.settings import read_environment_settings
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings

N_SCENES = 4


def write_benchmark(root: Path, *, n_scenes: int = N_SCENES, prompts: bool = True) -> Path:
    """A real clip of each scene, and one of each scene by two creators whose clips are longer."""
    (root / "clips").mkdir(parents=True)
    lines = []
    for number in range(n_scenes):
        for creator, n_frames in (("", 12), ("Sora", 18), ("Veo", 20)):
            name = f"clips/{creator or 'real'}-{number}.mp4"
            made = ClipRecipe(n_frames=n_frames, seed=number + 10 * n_frames)
            (root / name).write_bytes(synthesise(made))
            lines.append(
                {
                    "file_name": name,
                    "name": f"{creator or 'real'}-{number}",
                    "label": "generated" if creator else "real",
                    "creator": creator,
                    "setting": "",
                    "group": f"scene-{number}",
                    "prompt": f"a ball, number {number}" if prompts else "",
                }
            )
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (root / "metadata.jsonl").write_text(text, encoding="utf-8")
    return root


def write_clips(
    root: Path, *, n_scenes: int = N_SCENES, seed: int = 50, n_frames: int = 14
) -> Path:
    """What a creator made elsewhere: one clip of each scene, named after it."""
    root.mkdir(parents=True)
    for number in range(n_scenes):
        made = ClipRecipe(n_frames=n_frames, seed=seed + number)
        (root / f"scene-{number}.mp4").write_bytes(synthesise(made))
    return root


@dataclass
class Stadium:
    """A folder with a benchmark, creators' clips and a season that can be changed and played."""

    root: Path
    creators: list[dict[str, Any]] = field(default_factory=list)
    reviewers: list[dict[str, Any]] = field(default_factory=list)
    conditions: list[dict[str, Any]] = field(default_factory=list)
    head: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    out: str = "played"

    @property
    def file(self) -> Path:
        return self.root / "season.toml"

    @property
    def folder(self) -> SeasonFolder:
        return SeasonFolder(StorageLocation(str(self.root / self.out)))

    def write(self, *, pin: bool = True) -> Path:
        """The season as TOML, with the benchmark's hash."""
        head = {"name": "spring", "benchmark": "bench", "protocol": "reality"} | self.head
        self._write(head)
        if pin and "digest" not in head:
            self._write(head | {"digest": open_season_benchmark(read_season(self.file)).digest})
        return self.file

    def _write(self, head: dict[str, Any]) -> None:
        lines = [f"{key} = {json.dumps(value)}" for key, value in head.items()]
        parts = {"creator": self.creators, "reviewer": self.reviewers, "condition": self.conditions}
        for name, sections in parts.items():
            for section in sections:
                lines += [f"[[{name}]]", *(f"{k} = {json.dumps(v)}" for k, v in section.items())]
        for name, section in self.sections.items():
            lines += [f"[{name}]", *(f"{k} = {json.dumps(v)}" for k, v in section.items())]
        self.file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def job(self, **given: Any) -> SeasonJob:
        self.write()
        season = read_season(self.file)
        access = ClipAccessSettings(settings=read_environment_settings(), trusted=True)
        return SeasonJob(
            season=season,
            folder=resolve_season_folder(season, self.folder.path),
            access=access,
            **given,
        )

    def play(self, **given: Any) -> SeasonOutcome:
        return run_season(self.job(**given))

    def answers(self) -> dict[str, int]:
        """How many answers there are, by the reviewer's title."""
        from unreel.engine.table import LanceTable

        found = {}
        for each in self.folder.entrants().reviewers:
            table = LanceTable(self.folder.run(each.folder) / "answers.lance", ANSWERS)
            found[each.title] = table.count() if table.exists() else 0
        return found

    def forget(self) -> None:
        shutil.rmtree(self.folder.path, ignore_errors=True)
