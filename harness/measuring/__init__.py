"""Timings and counts of instructions of built sides on this machine."""
