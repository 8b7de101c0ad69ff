"""Raw video comes in: folders, store prefixes, tables and video folders, each clip with its rights."""
