"""Trees of commits on disk: checked out, copied, read without trust, removed."""
