"""Who calls whom in a tree, as far as its sources show without running anything."""
