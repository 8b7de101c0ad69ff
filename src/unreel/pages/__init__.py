"""Parts of HTML pages: page frame, player and playable clips.

Where to look:
    `html_page.py`: one HTML document without external resources.
    `player.py`: data of the player.
    `playable_clip.py`: a clip that browsers play.
"""
