"""Predictions of models: read, made into grades, and compared."""
