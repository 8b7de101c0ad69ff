"""The evidence of one clip: page, terminal, stills and result.json.

Where to look:
    `evidence_page.py`: the page, with its stills.
    `file_origin.py`: checks of the file.
    `visible_watermarks.py`: visible watermarks.
    `provenance.py`: C2PA manifests.
    `drawn_findings.py`: faults on the page and in the annotated copy.
    `terminal.py`: the same on a terminal.
    `review_result.py`: result.json, and the first sentence of the page; accuracy in earlier runs.
    `index_page.py`: the index of several clips.
"""
