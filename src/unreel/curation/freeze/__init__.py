"""`[freeze]`: what is published: splits, media, manifest, card and checksums."""
