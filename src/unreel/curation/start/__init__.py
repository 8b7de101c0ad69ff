"""A recipe to start with: for a folder of one's own, or for clips that are drawn here."""
