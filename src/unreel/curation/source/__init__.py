"""`[source]`: raw video comes in: folders, store prefixes, tables and video folders, with their rights."""
