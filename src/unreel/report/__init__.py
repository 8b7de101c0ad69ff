"""HTML pages about stored answers. The pages open from disk, without a web server.

Where to look:
    `site.py`: the report of runs.
    `entrants.py`: the data of a run for its pages.
    `boards/`: panels, charts and tables.
    `clips/`: the browser of clips.
    `review/`: the evidence page of one clip.
    `season/`: the pages of a season.
"""
