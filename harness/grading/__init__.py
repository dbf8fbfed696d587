"""Gradings of patches by the programs of `harness/grader`."""
