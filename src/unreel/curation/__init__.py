"""Curation of raw video into a frozen, audited benchmark. The same recipe gives the same bytes.

Where to look:
    `recipe.py`: all settings.
    `curation_run.py`: the steps in their order, and the forecast of a recipe.
    `step_execution.py`: execution of one step, and its table of results.
    `source_clips.py`: input files.
    `shots.py`: measurements, fingerprint and cuts of each file, near-duplicates, division of clips into shots, removal of filled borders,
        and equal lengths of real and generated clips.
    `clip_screens.py`: selection by measurements and by human decisions.
    `describe.py`: descriptions by a model, and even sampling by meaning.
    `normalise.py`: one format.
    `inject/`: known traces.
    `watermark/`: overlays.
    `audit/`: label leaks.
    `freeze/`: splits, manifest, card, checksums.
    `segment.py`: clips during a curation, their tables between two steps, and excluded clips with reasons.
    `contact_sheet.py`: a page of thumbnails.
    `hub_dataset.py`: a folder for a dataset hub.
    `benchmark_diff.py`: differences between two versions of a benchmark.
"""
