"""Questions of the protocol `reality`, texts of its verdicts, and the question about a storyboard."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from unreel.core.clip import Origin, Real
from unreel.core.verdict import RealityVerdict
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.protocol import EVEN, ProtocolPrompt, ProtocolTexts, format_verdict_part

SOURCE = "Video Reality Test, arXiv 2512.13281"

# The paper prints the opening tag in place of the closing one.
_PAPER = (
    "Given the following video, please determine if the video is real or fake. First, think "
    "about the reasoning process, and then provide the answer. The reasoning process should be "
    "enclosed within <think></think> tags, and the answer should be enclosed within "
    "<answer></answer> tags. Respond with “1” for real and “0” for fake. For example: "
    "<think>reasoning process here <think><answer>answer here </answer>. <video >"
)
_DIRECT = (
    "Given the following video, please determine if the video is real or fake. Respond with “1” "
    "for real and “0” for fake. Provide the answer directly within <answer></answer> tags, like "
    "this: <answer>answer here </answer>.\n"
    "\n"
    "<video >"
)
_DETAILED = (
    "You are given the frames evenly sampled from an ASMR video.\n"
    "\n"
    "<video>\n"
    "\n"
    "Your task is to determine whether this video is a **real human-recorded ASMR video** or a "
    "**synthetically generated one**.\n"
    "\n"
    "Carefully analyze the frames for:\n"
    "\n"
    "1. **Visual realism** — look at lighting consistency, texture fidelity, material "
    "reflection, and naturalness of motion cues.\n"
    "2. **Human or object authenticity** — whether skin, hands, tools, or surfaces appear "
    "physically plausible rather than rendered or overly smooth.\n"
    "3. **Acoustic plausibility (implied)** — infer if the scene\u2019s visual rhythm and tactile "
    "context align with realistic ASMR sound production (*e.g.* brushing, tapping, slicing, "
    "pouring).\n"
    "4. **Temporal coherence** — whether transitions between frames follow a physically "
    "continuous process or show artifacts of generation (*e.g.* warping, unstable geometry, or "
    "inconsistent textures).\n"
    "\n"
    "After reasoning, output the answer in the following strict format:\n"
    "\n"
    "<think>(Write 2\u20134 sentences summarizing why you believe the video is real or generated.)\n"
    "</think>\n"
    "\n"
    "<answer>\n"
    "\n"
    "0\n"
    "\n"
    "</answer>\n"
    "\n"
    "where **0** = generated (fake), **1** = real (authentic human-captured video)."
)

_CONFIDENCE = (
    "Given the following video, please determine if the video is real or fake. Respond with “1” "
    "for real and “0” for fake. Provide the answer directly within <answer></answer> tags, and "
    "within <confidence></confidence> tags how likely it is that your answer is right, as a "
    "number from 0 to 100, like this: <answer>answer here </answer><confidence>number here "
    "</confidence>.\n"
    "\n"
    "<video >"
)
CONFIDENCE_PROMPTS = frozenset({"confidence"})

PROMPTS: Mapping[str, ProtocolPrompt] = MappingProxyType(
    {
        "paper": ProtocolPrompt(text=_PAPER, source=SOURCE),
        "direct": ProtocolPrompt(text=_DIRECT, source=SOURCE),
        "detailed": ProtocolPrompt(text=_DETAILED, source=SOURCE),
        "confidence": ProtocolPrompt(text=_CONFIDENCE, source=SOURCE, wording="derived"),
    }
)

STORYBOARD = ProtocolPrompt(
    text=(
        "Given 8 frames evenly sampled from an ASMR video, describe the overall scene in a "
        "single, continuous paragraph. Integrate information about the visual environment "
        "(background, lighting, textures, mood), the main subjects or objects, their actions and "
        "temporal dynamics, and the corresponding auditory sensations (e.g. crisp cutting, "
        "gentle tapping, soft brushing, fluid pouring). Use concise yet immersive language that "
        "evokes sight, touch, and sound simultaneously. Avoid enumeration or structural "
        "markers—produce one coherent cinematic paragraph. <video>"
    ),
    source=SOURCE,
)
"""Prompt that turns 8 frames of a real clip into a text prompt for creators."""


_TRAINABLE = frozenset({"direct"})
"""Prompts for training; the others ask for reasoning or a confidence, which no ground truth has."""


def _format_correct_answer(truth: Origin) -> str:
    return "1" if isinstance(truth, Real) else "0"


def _format_answer_from_probability(p_generated: Sequence[float], prompt: str) -> str:
    (p,) = p_generated
    answer = f"<answer>{int(p <= EVEN)}</answer>"
    if prompt not in CONFIDENCE_PROMPTS:
        return answer
    return f"{answer}<confidence>{100 * max(p, 1 - p):.2f}</confidence>"


def _iter_verdict_details(verdict: RealityVerdict) -> Iterator[tuple[str, str]]:
    if verdict.confidence is not None:
        yield "confidence", format_verdict_part(verdict.confidence, "{:g} of 100".format)


def _format_training_answer(truth: Origin, _prompt: str, _space: BoxSpace | None) -> str:
    return f"<answer>{_format_correct_answer(truth)}</answer>"


WORDING: ProtocolTexts[Origin, RealityVerdict] = ProtocolTexts(
    decides="label",
    say=str,
    right=_format_correct_answer,
    phrase=_format_answer_from_probability,
    details=_iter_verdict_details,
    teaches=_TRAINABLE,
    write=_format_training_answer,
)
