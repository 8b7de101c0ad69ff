"""Printed results of the three papers as data, and their recalculation.

It imports `protocols` and `core`.
"""
