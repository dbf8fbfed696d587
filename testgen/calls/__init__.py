"""Who calls whom in a tree, as far as its sources tell without running anything."""
