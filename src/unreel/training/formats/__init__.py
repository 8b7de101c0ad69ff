"""The same examples for trainers of other people: their files, their settings, and where they cannot do what we do."""
