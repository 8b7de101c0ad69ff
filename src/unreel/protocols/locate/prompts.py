"""Prompts of the protocol `locate`, written for unreel and not taken from a paper."""

from collections.abc import Mapping
from types import MappingProxyType

from unreel.core.trace import Category
from unreel.protocols.protocol import ProtocolPrompt

_SOURCE = "unreel"
_CATEGORIES = ", ".join(category.value for category in Category)
_TASK = (
    "Parts of this video may be AI-generated, in time (a segment) or in space (an object in real footage). "
    "Find every generated segment."
)
_JSON = (
    f"{_TASK} Reply with a JSON list and nothing else. Each element is an object with start and end (seconds), "
    'boxes (a list of {"time": seconds, "box": [x0, y0, x1, y1]}; an empty list if the whole frame is '
    f"generated), category (one of {_CATEGORIES}), confidence (from 0 to 1) and reason (one sentence). If no "
    "part is generated, reply with []."
)
_TAGGED = (
    f"{_TASK} Describe each one as <type>CATEGORY</type> in <t>[START, END]</t> at <bbox>[x0, y0, x1, y1]</bbox>, "
    f"with times in seconds and one of these categories: {_CATEGORIES}. Then reply with <answer>Fake</answer>, "
    "or with <answer>Real</answer> if no part is generated."
)
TAGGED_PROMPTS = frozenset({"tagged"})
"""Variants that are answered in the tags of ViF-CoT; the others are answered in JSON."""

PROMPTS: Mapping[str, ProtocolPrompt] = MappingProxyType(
    {
        "paper": ProtocolPrompt(text=_JSON, source=_SOURCE, wording="own"),
        "tagged": ProtocolPrompt(text=_TAGGED, source=_SOURCE, wording="own"),
    }
)
"""Prompts by variant; the default variant of every protocol is called `paper`."""
