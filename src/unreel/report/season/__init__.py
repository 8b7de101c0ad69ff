"""Static pages of a season.

Where to look:
    `site.py`: all files, also the results as JSON.
    `read_season.py`: reads the folder of a season.
    `page_data.py`: the data of the pages, and the names of metrics.
    `leaderboards.py`: both leaderboards, their heat map, and the effects of changed settings.
    `entrant_page.py`: the pages of creators and reviewers.
"""
