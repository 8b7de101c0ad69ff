"""Other tools' files of marked videos: read, written, and turned into one another."""
