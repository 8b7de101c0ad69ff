"""Small curations over synthesised clips."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import ClipAccessSettings

pytest.importorskip("lance", reason="needs the extra `eval`")

from unreel.curation.curation_run import CurationRecipeJob
from unreel.curation.recipe import parse_curation_recipe
from unreel.curation.step_execution import CurationContext
from unreel.engine.location import StorageLocation


@pytest.fixture(scope="session")
def footage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten clips below `real/` and `generated/<creator>/`; nobody may change them."""
    root = tmp_path_factory.mktemp("footage")
    for number in range(10):
        side = "real" if number % 2 else ("generated/Veo" if number % 4 else "generated/Sora")
        path = root / side / f"clip{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        recipe = ClipRecipe(
            width=128 if number % 3 else 192,
            height=96,
            rate=Fraction(24 if number % 2 else 30),
            n_frames=24 + number,
            tone_hz=440 if number == 1 else None,
            seed=number,
        )
        path.write_bytes(synthesise(recipe))
    return root


@pytest.fixture
def curation(tmp_path: Path) -> Callable[..., CurationRecipeJob]:
    """A curation of `source` with further sections of a recipe, in the folder `out`."""

    def make(
        source: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        out: str = "out",
        engine: str = "local",
        accept_leak: bool = False,
        **sections: Any,
    ) -> CurationRecipeJob:
        whole = {"version": "1.0", "shares": [3, 1, 1], "labels": []}
        values = {"name": "small", "require_licence": False, "source": source, "freeze": whole}
        values |= sections
        folder = tmp_path / out
        return CurationRecipeJob(
            recipe=parse_curation_recipe(values),
            root=tmp_path,
            context=CurationContext(
                place=StorageLocation(str(folder)),
                access=ClipAccessSettings(settings=read_environment_settings(), trusted=True),
                ledgers=folder / "ledgers",
                engine=engine,
            ),
            accept_leak=accept_leak,
        )

    return make


@pytest.fixture
def tree() -> Callable[[Path], dict[str, str]]:
    """Every file below a folder with the hash of its bytes."""

    def read(folder: Path) -> dict[str, str]:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return {
            path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
        }

    return read


@pytest.fixture
def quarantine() -> Callable[[CurationRecipeJob], dict[str, str]]:
    """Names that were left out, with step and reason."""

    def read(curation: CurationRecipeJob) -> dict[str, str]:
        text = (curation.context.place.path / "quarantine.jsonl").read_text()
        rows = [json.loads(line) for line in text.splitlines()]
        return {row["name"]: f"{row['step']}: {row['reason']}" for row in rows}

    return read
