"""Creators of clips behind one interface.

Where to look:
    `contract.py`: the interface of a creator.
    `config.py`: the `[[creator]]` section of a recipe.
    `folder.py`: clips in a folder.
    `endpoint.py`: text- and image-to-video services.
    `edited_clips.py`: edited real clips as controls.
"""
