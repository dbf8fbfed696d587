"""Verdict to workloads and targets: unit tests chosen by coverage, functions by profile."""
