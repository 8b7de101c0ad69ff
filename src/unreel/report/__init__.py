"""Pages that open from disk, made from stored answers."""
