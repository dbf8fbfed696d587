"""Runs code: builds environments, sandboxes processes, times workloads."""
