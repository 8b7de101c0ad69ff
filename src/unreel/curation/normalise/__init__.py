"""`[normalise]`: pieces become files, in one form where the recipe names one."""
