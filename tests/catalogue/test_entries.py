"""The catalogue: every entry is valid, every fact has a source and a mark, and examples read as stated."""

import tomllib
from pathlib import Path

import pytest

from unreel.catalogue.entries import (
    CatalogueBenchmark,
    CatalogueEntry,
    CatalogueModel,
    FactMark,
    get_benchmark,
    get_model,
    list_benchmarks,
    list_models,
)
from unreel.catalogue.owner_answers import AnswerFormat, parse_owner_answer
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.safe_names import make_safe_file_name
from unreel.core.trace import Category
from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.protocol import AnswerContext, get_protocol
from unreel.recipes.validation import validate_recipe_sections

ROOT = Path(__file__).parents[2]
DATA = ROOT / "src" / "unreel" / "catalogue"
ENTRIES: list[CatalogueEntry] = [*list_benchmarks(), *list_models()]


def _name(entry: CatalogueEntry) -> str:
    return entry.name


def test_every_file_is_an_entry_and_no_two_have_one_title() -> None:
    files = sorted(path.stem for path in DATA.glob("*/*.toml"))
    assert files == sorted(entry.name for entry in ENTRIES)
    assert len(list_benchmarks()) >= 30
    assert len(list_models()) >= 30
    assert len({entry.title for entry in ENTRIES}) == len(ENTRIES)
    assert [name for name in files if make_safe_file_name(name) != name] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=_name)
def test_every_fact_has_a_mark_and_a_source_and_a_value_unless_not_stated(
    entry: CatalogueEntry,
) -> None:
    facts = list(entry.iter_facts())
    assert {name for name, _ in facts} == {*type(entry).model_fields} - CatalogueEntry.SETTINGS
    for name, fact in facts:
        assert fact.source, name
        assert (fact.value is None) == (fact.mark is FactMark.NOT_STATED), name


@pytest.mark.parametrize("path", sorted(DATA.glob("*/*.toml")), ids=lambda path: path.stem)
def test_every_file_is_plain_text(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.isascii()
    assert all(line.isprintable() for line in text.splitlines())
    assert "recalled" not in text


def test_a_fact_that_the_owner_states_names_an_address_or_a_document() -> None:
    verified = {
        fact.source
        for entry in ENTRIES
        for _, fact in entry.iter_facts()
        if fact.mark is FactMark.VERIFIED
    }
    assert [
        source for source in verified if not source.startswith(("https://", "a mirror of the card"))
    ] == []


FACT = {"value": "MIT", "mark": "verified", "source": "https://example.org"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"licence": {**FACT, "mark": "recalled"}}, "licence.mark"),
        ({"licence": {"value": "MIT", "mark": "verified"}}, "licence.source: not given"),
        ({"licence": {**FACT, "mark": "not stated"}}, "a fact has a value or the mark"),
        ({"licence": {"mark": "verified", "source": "x"}}, "a fact has a value or the mark"),
        ({"license": FACT}, "Did you mean 'licence'"),
        ({"protocols": ["realty"]}, "no protocol is named 'realty'"),
        ({"revision": {**FACT, "value": "main"}}, "revision.value"),
        ({"hub_ids": {**FACT, "value": ["../../x"]}}, "hub_ids.value"),
        ({"licence": {**FACT, "value": "a\nb"}}, "does not fit on a line"),
        ({"licence": {**FACT, "value": "\x1b[2J"}}, "does not fit on a line"),
    ],
)
def test_a_damaged_entry_is_rejected(change: dict[str, object], words: str) -> None:
    values = {"name": "x", "title": "X", **change}
    with pytest.raises((InvalidSettingError, UnknownNameError)) as raised:
        validate_recipe_sections(CatalogueBenchmark, values)
    assert words in str(raised.value)


def test_an_unknown_name_is_rejected_with_the_nearest_one() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'deeptracereward'"):
        get_benchmark("deeptrace-reward")
    with pytest.raises(UnknownNameError, match="Did you mean 'skyra-rl'"):
        get_model("skyra_rl")
    with pytest.raises(UnknownNameError):
        get_model("../benchmarks/loki")


def _format_verdict(verdict: object) -> str:
    """The one reading of a verdict: label, score, segments, or the reason why there is none."""
    for field in ("segments", "label", "score", "real"):
        found = getattr(verdict, field, None)
        if isinstance(found, Unparsed):
            return found.reason.value
        if isinstance(found, tuple):
            boxes = [segment for segment in found if segment.trace.track]
            assert len(boxes) == len(found)
            return f"{len(found)} segment with a box"
        if found is not None:
            return str(getattr(found, "value", found))
    raise AssertionError(verdict)


EXAMPLES = [(model, fact.value) for model in list_models() for fact in model.examples]


@pytest.mark.parametrize(
    ("model", "example"),
    EXAMPLES,
    ids=[f"{model.name}-{n}" for n, (model, _) in enumerate(EXAMPLES)],
)
def test_an_example_answer_is_read_as_stated(model: CatalogueModel, example) -> None:
    protocol = get_protocol(example.protocol)
    variant = example.prompt or "paper"
    for mode, expected in example.read.items():
        context = AnswerContext(mode=mode, prompt=variant, space=BoxSpace("pixel", 100, 100))
        assert _format_verdict(protocol.parse(example.text, context)) == expected
    formats = {fact.value.protocol: fact.value for fact in model.answer_format}
    assert (example.own is not None) is (example.protocol in formats)
    if example.own is not None:
        space = BoxSpace("pixel", 100, 100)
        verdict = parse_owner_answer(example.text, formats[example.protocol], space)
        assert _format_verdict(verdict) == example.own


def test_an_answer_format_belongs_to_a_known_prompt_and_has_an_example() -> None:
    for model in list_models():
        formats = [fact.value.protocol for fact in model.answer_format]
        assert len(formats) == len(set(formats))
        assert set(formats) == {e.value.protocol for e in model.examples if e.value.own}
        assert bool(formats) is bool(model.prompt and model.prompt.value), model.name
        assert set(formats) <= {*model.protocols}


FORMATS = [(model.name, fact.value) for model in list_models() for fact in model.answer_format]
NUMBERS = "", "0", "6", "-1", "3.", "three", "3/5", "3 4", "Score: 3", "<think>3", "3%", "III"


def _list_damaged(answer_format: AnswerFormat) -> list[str]:
    """Answers that nearly have the form, at least ten."""
    if answer_format.place == "whole":
        return [*NUMBERS, "3.5"]
    if answer_format.place == "names":
        lines = [f"{name} 3" for name in answer_format.names]
        whole, number = "\n".join(lines), str(answer_format.score)
        return [
            "",
            "3 3 3",
            *("\n".join(lines[:n] + lines[n + 1 :]) for n in range(len(lines))),
            "\n".join(reversed(lines)),
            f"{whole}\n{whole}",
            f"<think>{whole}",
            *(
                whole.replace(f"{number} 3", f"{number} {damaged}")
                for damaged in ("0", "6", "5.1", "-3", "3/5", "3 / 5", "3,5", "three", "3.", "")
            ),
        ]
    wrap = "\\boxed{%s}" if answer_format.place == "boxed" else f"<{answer_format.tag}>%s</{answer_format.tag}>"  # fmt: skip
    first, second = answer_format.labels
    return [
        "",
        first,
        wrap % "",
        wrap % first.swapcase(),
        wrap % f"{first}.",
        wrap % f"{first} or {second}",
        wrap % first + wrap % second,
        wrap % first + wrap % first,
        (wrap % first)[:-1],
        (wrap % first)[1:],
        f"<think>{wrap % first} and so on",
        wrap % "unknown",
        f"{wrap % first} {(wrap % second)[:-1]}",
    ]


DAMAGED = [(name, form, text) for name, form in FORMATS for text in _list_damaged(form)]


@pytest.mark.parametrize(
    ("answer_format", "text"),
    [(form, text) for _, form, text in DAMAGED],
    ids=[f"{name}-{form.protocol}-{n}" for n, (name, form, _) in enumerate(DAMAGED)],
)
def test_a_damaged_answer_is_not_read(answer_format: AnswerFormat, text: str) -> None:
    verdict = parse_owner_answer(text, answer_format, BoxSpace("pixel", 100, 100))
    reasons = {reason.value for reason in UnparsedReason}
    assert _format_verdict(verdict) in reasons


SKYRA = "<think>It shakes: <type>%s</type> in <t>%s</t> at <bbox>%s</bbox>.</think><answer>Fake</answer>"  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "times", "box"),
    [
        ("Unnatural blur", "[0.2, 0.6]", "[1, 2, 30, 40]"),
        ("object-distortion", "[0.2, 0.6]", "[1, 2, 30, 40]"),
        ("", "[0.2, 0.6]", "[1, 2, 30, 40]"),
        ("Unnatural Blur", "[0.6, 0.2]", "[1, 2, 30, 40]"),
        ("Unnatural Blur", "[0.2]", "[1, 2, 30, 40]"),
        ("Unnatural Blur", "0.2 to 0.6", "[1, 2, 30, 40]"),
        ("Unnatural Blur", "[0.2, 0.6]", "[1, 2, 30]"),
        ("Unnatural Blur", "[0.2, 0.6]", "[30, 40, 30, 40]"),
        ("Unnatural Blur", "[0.2, 0.6]", "here"),
        ("Unnatural Blur", "[nan, 0.6]", "[1, 2, 30, 40]"),
    ],
)
def test_damaged_segments_of_an_owner_are_not_read(kind: str, times: str, box: str) -> None:
    (form,) = [form for name, form in FORMATS if (name, form.protocol) == ("skyra-rl", "locate")]
    space = BoxSpace("pixel", 100, 100)
    sound = parse_owner_answer(SKYRA % ("Unnatural Blur", "[0.2, 0.6]", "[1, 2, 30, 40]"), form, space)  # fmt: skip
    (segment,) = sound.segments
    assert segment.trace.categories == {Category.SUDDEN_BLURRING}
    assert segment.trace.explanation == "Unnatural Blur"
    damaged = parse_owner_answer(SKYRA % (kind, times, box), form, space)
    assert isinstance(damaged.segments, Unparsed)


@pytest.mark.parametrize(("number", "score"), [("2.4036", 2), ("2.5", 3), ("3.0987", 3), ("5", 5)])
def test_decimals_are_rounded_to_a_whole_score(number: str, score: int) -> None:
    (form,) = [form for name, form in FORMATS if name == "unifiedreward-2.0"]
    text = f"Alignment Score (1-5): 1.2\nPhysics Score (1-5): {number}\nStyle Score (1-5): 4.9\n"
    assert parse_owner_answer(text, form).score == score


def test_a_prompt_is_a_reference_and_not_the_text_of_its_owner() -> None:
    prompts = [model.prompt.value for model in list_models() if model.prompt and model.prompt.value]
    assert len(prompts) >= 8
    for prompt in prompts:
        texts = [prompt.path, prompt.system or "", *prompt.user, prompt.frame_time or ""]
        assert max(map(len, texts)) < 130


def test_the_wheel_takes_the_whole_package_with_the_entries() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/unreel"]}
    assert all(path.is_relative_to(ROOT / "src" / "unreel") for path in DATA.glob("*/*.toml"))
