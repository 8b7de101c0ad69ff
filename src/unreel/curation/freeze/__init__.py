"""`[freeze]`: splits, media, manifest, card and checksums of the benchmark."""
