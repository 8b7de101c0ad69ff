"""The evidence of one clip: page, terminal, stills and result.json.

Where to look:
    `evidence.py`: the page.
    `headline.py`: its first sentence.
    `origin.py`: checks of the file.
    `marks.py`: visible marks.
    `provenance.py`: C2PA manifests.
    `stills.py`: stills of each fault.
    `annotated_clip.py`: the annotated copy.
    `terminal.py`: the same on a terminal.
    `result.py`: result.json.
    `index_page.py`: the index of several clips.
"""
