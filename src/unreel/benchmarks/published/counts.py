"""Video Reality Test's tables 6 to 15: how often each reviewer said real or generated, by source."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Final

from unreel.benchmarks.published.tables import show

REAL: Final = "Real"

COUNT_TABLES: Final[Mapping[str, int]] = {
    "Qwen3-VL-8B": 6,
    "Qwen3-VL-235B-A22B": 7,
    "Qwen2.5-VL-72B": 8,
    "GPT-5": 9,
    "Qwen3-VL-30B-A3B": 10,
    "GLM-4.5V": 11,
    "Gemini-2.5-Pro": 12,
    "Gemini-2.5-Flash": 13,
    "GPT-4o": 14,
    "GPT-4o-mini": 15,
}
"""Which table counts the answers of which reviewer of table 2."""

COLUMNS: Final[Mapping[str, str]] = {
    "Veo3.1-Fast": "Veo-3.1-fast ImgText2Vid",
    "Sora2": "Sora2 ImgText2Vid",
    "Wan2.2-A14B": "Wan2.2 ImgText2Vid-A14B",
    "Wan2.2-5B": "Wan2.2 ImgText2Vid-5B",
    "OpenSora-V2": "OpenSora-V2 ImgText2Vid",
    "HunyuanVideo": "HunyuanVideo ImgText2Vid",
    "StepVideo": "StepVideo Text2Vid",
}
"""Which line of table 3 is the creator of which column of table 2."""

# The count tables spell one source in up to four ways: name first, then a setting or nothing.
_LINES: Final[Mapping[tuple[str, str], str]] = {
    ("veo3.1-fast", ""): "Veo-3.1-fast ImgText2Vid",
    ("sora2", ""): "Sora2 ImgText2Vid",
    ("sora2", "it2v"): "Sora2 ImgText2Vid",
    ("sora2", "t2v"): "Sora2 Text2Vid",
    ("hunyuan", ""): "HunyuanVideo ImgText2Vid",
    ("hunyuan", "it2v"): "HunyuanVideo ImgText2Vid",
    ("hunyuan", "t2v"): "HunyuanVideo Text2Vid",
    ("opensora", "i2v"): "OpenSora-V2 ImgText2Vid",
    ("opensora", "t2v"): "OpenSora-V2 Text2Vid",
    ("opensora", "t2i2v"): "OpenSora-V2 Text2Img2Vid",
    ("wan", "it2v"): "Wan2.2 ImgText2Vid-5B",
    ("wan", "i2v"): "Wan2.2 ImgText2Vid-A14B",
    ("wan", "t2v"): "Wan2.2 Text2Vid-A14B",
    ("stepvideo", "t2v"): "StepVideo Text2Vid",
    ("real", ""): REAL,
    ("real", "videos"): REAL,
}


@dataclass(frozen=True, slots=True)
class GeneratedCount:
    """Valid answers about one source, and how many of them say generated."""

    valid: int
    said_fake: int

    @property
    def said_real(self) -> int:
        """Valid answers that say real."""
        return self.valid - self.said_fake

    def __str__(self) -> str:
        return f"{self.said_fake} of {self.valid}"


def two_places(percent: Fraction | float) -> Decimal:
    """`percent` as Video Reality Test prints it: half up to two places, in one step."""
    exact = percent if isinstance(percent, Fraction) else Fraction(str(percent))
    quotient = Decimal(exact.numerator) / Decimal(exact.denominator)
    return quotient.quantize(Decimal("0.01"), ROUND_HALF_UP)


CountTables = Mapping[int, Mapping[str, GeneratedCount]]


def count_tables() -> CountTables:
    """Every count, by table number and by `Real` or the line of table 3 that it belongs to."""
    tables: dict[int, dict[str, GeneratedCount]] = {}
    for row in show("reality_counts").rows:
        name, *setting = re.findall(r"[\w.-]+", row["source"].lower())
        line = _LINES[name, "".join(setting)]
        count = GeneratedCount(valid=int(row["valid"]), said_fake=int(row["predicted_fake"]))
        tables.setdefault(int(row["table"]), {})[line] = count
    return tables
