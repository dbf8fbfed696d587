"""Runs the programs of `harness/probe` in a sandbox, from outside."""
