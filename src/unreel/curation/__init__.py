"""Curation of raw video into a frozen, audited benchmark. The same recipe gives the same bytes.

Where to look:
    `recipe.py`: all settings.
    `curation_run.py`: the steps in their order.
    `step.py`: execution of one step, and its table of results.
    `source/`: input files.
    `scan.py`: shots, measurements and fingerprint of each file.
    `duplicates.py`: near-duplicates.
    `split.py`: shots.
    `crop.py`: removal of filled borders.
    `screen.py`: selection by measurements and by human decisions.
    `describe.py`: descriptions by a model.
    `cluster.py`: even sampling by meaning.
    `lengths.py`: equal lengths of real and generated clips.
    `normalise.py`: one format.
    `inject/`: known traces.
    `splice/`: long videos with generated segments.
    `watermark/`: overlays.
    `audit/`: label leaks.
    `freeze/`: splits, manifest, card, checksums.
    `forecast.py`: the effect of a recipe before it runs.
    `piece.py`: clips during a curation, and excluded clips with reasons.
    `contact_sheet.py`: a page of thumbnails.
    `hub_dataset.py`: a folder for a dataset hub.
"""
