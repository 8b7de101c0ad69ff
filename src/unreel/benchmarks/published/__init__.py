"""Printed results of the three papers as data, and their recalculation.

This folder imports `protocols` and `core`.
"""
