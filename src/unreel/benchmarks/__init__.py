"""What is judged: sets of clips with their truth, and the published figures. Imports `protocols`, `media`, `stats` and `core`."""
