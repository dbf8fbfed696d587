"""Both sides of a change made runnable: checks, native builds, repairs."""
