"""The evidence of one clip: page, terminal, stills and result.json.

Where to look:
    `evidence.py`: the page.
    `origin.py`: checks of the file.
    `marks.py`: visible marks.
    `provenance.py`: C2PA manifests.
    `stills.py`: stills of each fault.
    `findings.py`: faults on the page and in the annotated copy.
    `terminal.py`: the same on a terminal.
    `result.py`: result.json, and the first sentence of the page.
    `index_page.py`: the index of several clips.
"""
