"""HTML pages from stored answers. They open from disk.

Where to look:
    `site.py`: the report of runs.
    `entrants.py`: a run as pages need it.
    `boards/`: panels, charts and tables.
    `clips/`: the browser of clips.
    `mistakes.py`: the page of one reviewer.
    `review/`: the evidence page of one clip.
    `season/`: the pages of a season.
"""
