"""What a tree says of itself: its package, its tests, its recipe. Nothing is run."""
