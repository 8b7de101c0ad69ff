"""compose.yaml and the stages of the Dockerfile: the complete commands of the services."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def load_image_script() -> Any:
    spec = importlib.util.spec_from_file_location("image", ROOT / ".ci" / "image.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["image"] = module  # a dataclass looks its module up
    spec.loader.exec_module(module)
    return module


STAGES = load_image_script().read_stages((ROOT / "Dockerfile").read_text(encoding="utf-8"))


def read_service_command(name: str) -> list[str]:
    """Return the complete command of a service of compose.yaml, with an example for each variable."""
    service = COMPOSE["services"][name]
    entry = json.loads(STAGES[service["build"]["target"]].last("ENTRYPOINT"))
    return [*entry, *(re.sub(r"\$\{\w+.*?\}", "always-real", word) for word in service["command"])]
