"""What a Python program calls: one function for each thing that the commands do, with the same words."""
