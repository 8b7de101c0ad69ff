"""What `import unreel` promises: its names, its verbs, and how little it loads."""

import inspect
import pydoc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, get_args, get_origin, get_type_hints

import pandas as pd
import pytest

import unreel
from unreel.api.annotation import RuleKeys
from unreel.api.keyword_types import RecipeKeys, ReviewerKeys
from unreel.evaluation.recipe import EvalRecipe
from unreel.reviewers.config import ReviewerSection

Python = Callable[..., str]
VERBS = ("compare", "curate", "evaluate", "open_benchmark", "open_media", "open_run", "review")
VERBS = (*VERBS, "review_async", "score", "open_campaign", "rank_season", "run_season", "train")


def test_the_public_names_are_those_of_all_and_each_resolves(python: Python) -> None:
    assert dir(unreel) == unreel.__all__ == sorted(set(unreel.__all__))
    loaded = python(
        "import unreel\nnames = {}\nexec('from unreel import *', names)\nnames.pop('__builtins__')\n"
        "assert sorted(names) == unreel.__all__, set(names) ^ set(unreel.__all__)\n"
        "print(all(value is not None for value in names.values()))",
        extras=False,
    )
    assert loaded == "True"


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_a_function_and_help_shows_it(verb: str) -> None:
    found = getattr(unreel, verb)
    assert isinstance(found, FunctionType)
    told = pydoc.plain(pydoc.render_doc(found))
    assert f"function {verb} in module unreel.api." in told.replace("async function", "function")
    assert inspect.getdoc(found).splitlines()[0] in told


def _types(annotation: Any) -> Iterator[type]:
    if get_origin(annotation) is not None:
        for part in get_args(annotation):
            yield from _types(part)
    elif isinstance(annotation, list):
        for part in annotation:
            yield from _types(part)
    elif isinstance(annotation, type) and annotation.__module__.startswith("unreel"):
        yield annotation


def _promised() -> Iterator[tuple[str, Any]]:
    for name in VERBS:
        yield name, getattr(unreel, name)
    for word in (unreel.Run, unreel.StoredCampaign):
        for name, member in vars(word).items():
            if not name.startswith("_") and isinstance(member, FunctionType):
                yield f"{word.__name__}.{name}", member


def test_every_type_that_a_verb_speaks_of_is_public() -> None:
    hidden, public = {}, {name: getattr(unreel, name) for name in unreel.__all__}
    for name, called in _promised():
        hints = get_type_hints(called, localns={"pd": pd} | public)
        named = {found for hint in hints.values() for found in _types(hint)}
        named -= {ReviewerKeys, RecipeKeys, RuleKeys}  # keys that are written one by one
        hidden[name] = {found.__name__ for found in named} - {*unreel.__all__}
    assert {name: found for name, found in hidden.items() if found} == {}


def test_the_keys_that_verbs_take_are_those_of_a_recipe() -> None:
    reviewer = {*ReviewerSection.model_fields} - {"model", "parser"}
    assert {*ReviewerKeys.__annotations__} == reviewer
    own = {*inspect.signature(unreel.evaluate).parameters} | {"condition", "reviewer"}
    assert {*RecipeKeys.__annotations__} == {*EvalRecipe.known_keys()} - own


@pytest.mark.parametrize(
    ("call", "extra"),
    [
        ("evaluate('films', model='coin', protocol='reality')", "eval"),
        ("open_run('run')", "eval"),
        ("compare('run', 'other')", "eval"),
        ("curate({})", "curate"),
        ("run_season('season.toml')", "eval"),
        ("rank_season('season')", "eval"),
        ("open_campaign('votes', ledger='ledger.db')", "annotate"),
        ("train('vrb-sft')", "train"),
    ],
)
def test_without_an_extra_a_verb_says_which_one_to_install(
    call: str, extra: str, python: Python
) -> None:
    told = python(
        f"import unreel\ntry:\n    unreel.{call}\nexcept unreel.UnreelError as error:\n"
        "    print(type(error).__name__, error)",
        extras=False,
    )
    assert told.startswith("MissingExtraError ")
    assert told.endswith(f"Install it with: pip install 'unreel[{extra}]'")


def test_the_base_install_reviews_scores_and_reads(clip: Path, films: Path, python: Python) -> None:
    told = python(
        "import unreel\n"
        f"print(unreel.review({str(clip)!r}, models='coin').is_complete)\n"
        f"names = [entry.name for entry in unreel.open_benchmark({str(films)!r})]\n"
        "answers = dict.fromkeys(names, '<answer>1</answer>')\n"
        f"print(unreel.score(answers, benchmark={str(films)!r}, protocol='reality').n_answered)\n"
        f"with unreel.open_media() as media:\n    print(media.probe({str(clip)!r}).video.width)\n",
        extras=False,
    )
    assert told.split() == ["True", "4", "192"]
