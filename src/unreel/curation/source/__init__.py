"""`[source]`: input clips from folders, store prefixes, tables and video folders."""
