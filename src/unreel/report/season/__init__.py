"""A season as static pages.

Where to look:
    `site.py`: all files.
    `read_season.py`: from the folder of a season.
    `view.py`: the data of the pages.
    `boards.py`: both boards.
    `matrix.py`: creators against reviewers.
    `reviewer_page.py`: the page of a reviewer.
    `creator_page.py`: the page of a creator.
    `exports.py`: JSON, and files for Hugging Face.
"""
