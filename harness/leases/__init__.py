"""What processes share on disk: made once, leased while used, evicted when there is too much of it."""
