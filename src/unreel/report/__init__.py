"""What people look at: pages that open from disk, made of stored answers."""
