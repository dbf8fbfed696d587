"""Workloads that replay calls recorded while unit tests ran."""
