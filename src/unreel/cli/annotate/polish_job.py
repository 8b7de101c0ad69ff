"""Implementation of `unreel annotate polish` and `confirm`, imported when they run."""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from unreel.annotation.campaign_state import read_campaign_records
from unreel.annotation.consensus.outcome import ConsensusRule
from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.rationale_polishing import (
    OriginalRationales,
    RationalePolishFailure,
    RationalePolishResult,
    iter_original_rationales,
    load_sentence_encoder,
    polish_all_rationales,
    read_polished_texts,
    store_polish_confirmation,
    store_polished_texts,
)
from unreel.cli.contacted_services import print_model_servers
from unreel.cli.output import print_json, print_message, print_table
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.settings import read_environment_settings
from unreel.recipes.validation import validate_recipe_sections
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.endpoint.model_address import parse_model_address


def polish_campaign_rationales(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Polish and store rationales without a polished text, if a model is named; print all texts."""
    settings = read_environment_settings()
    rule = ConsensusRule(quorum=options["quorum"], min_overlap=options["min_overlap"])
    with open_ledger(resolve_ledger_url(options["ledger"], settings)) as ledger:
        campaign = options["campaign"]
        originals = list(iter_original_rationales(read_campaign_records(ledger, campaign), rule))
        failed: list[RationalePolishFailure] = []
        if options["model"]:
            due = (
                originals
                if options["again"]
                else _select_unpolished_rationales(ledger, campaign, originals)
            )
            model = options["model"]
            parse_model_address(model)
            section = validate_recipe_sections(ReviewerSection, {"model": model})
            print_model_servers([model], settings)
            factory = section.opener(key_hosts=settings.key_hosts)
            answers = polish_all_rationales(
                due, factory, in_flight=section.max_connections, encoder=load_sentence_encoder()
            )
            done = [answer for answer in answers if isinstance(answer, RationalePolishResult)]
            store_polished_texts(ledger, campaign, done, at_us=time.time_ns() // 1000)
            failed = [answer for answer in answers if isinstance(answer, RationalePolishFailure)]
        polished = read_polished_texts(ledger.notices(campaign))
    by_task = {original.task: original for original in originals}
    texts = [(by_task[task], text) for task, text in polished.items() if task in by_task]
    if as_json:
        documents = [{"clip": original.name, "polished": text} for original, text in texts]
        print_json({"texts": documents, "failed": failed, "n_originals": len(originals)})
    else:
        rows = [
            {
                "task": text.task,
                "clip": original.name,
                "standing": text.standing if text.original == original.key else "outdated",
                "flags": ", ".join(text.flags) or "-",
                "similarity": "-" if text.similarity is None else f"{text.similarity:.2f}",
            }
            for original, text in texts
        ]
        print_table(("task", "clip", "standing", "flags", "similarity"), rows)
        print_message(f"{len(texts)} of {len(originals)} settled clips have a text")
        print_message(*(f"  no text: {f.original.name}: {f.failure}" for f in failed))
        print_message(f"next: unreel annotate confirm {campaign} TASK --by NAME")
    sys.exit(1 if failed else 0)


def confirm_polished_text(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Store whether a person accepts or rejects the polished text of a task, and print the text."""
    if not options["by"].strip():
        raise InvalidSettingError("--by", "the name of the reader is missing", "Give your name")
    with open_ledger(resolve_ledger_url(options["ledger"], read_environment_settings())) as ledger:
        campaign = options["campaign"]
        tasks = {task.id: task.names[0] for task in ledger.tasks(campaign)}
        polished = read_polished_texts(ledger.notices(campaign))
        named = {name: id_ for id_, name in tasks.items() if id_ in polished}
        id_ = named.get(options["task"], options["task"])
        if id_ not in polished:
            raise UnknownNameError("polished text", options["task"], sorted(named))
        accepted = not options["reject"]
        at_us = time.time_ns() // 1000
        store_polish_confirmation(
            ledger, campaign, polished[id_], by=options["by"], accepted=accepted, at_us=at_us
        )
        text = read_polished_texts(ledger.notices(campaign))[id_]
    if as_json:
        print_json(text)
        return
    print_message(f"{text.standing} by {text.by}: {tasks[id_]}", *text.text.splitlines())


def _select_unpolished_rationales(
    ledger: Ledger, campaign: str, originals: Sequence[OriginalRationales]
) -> list[OriginalRationales]:
    polished = read_polished_texts(ledger.notices(campaign))
    known = {(task, text.original) for task, text in polished.items()}
    return [original for original in originals if (original.task, original.key) not in known]
