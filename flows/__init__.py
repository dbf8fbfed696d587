"""Composes the stages into Prefect flows and the command line."""
