"""Static pages of a season.

Where to look:
    `site.py`: all files.
    `read_season.py`: reads the folder of a season.
    `page_data.py`: the data of the pages.
    `leaderboards.py`: both leaderboards.
    `detection_heat_map.py`: detection rates of creators against reviewers.
    `history_and_ablations.py`: results over seasons, and effects of single settings.
    `reviewer_page.py`: the page of a reviewer.
    `creator_page.py`: the page of a creator.
    `exports.py`: JSON, and files for Hugging Face.
"""
