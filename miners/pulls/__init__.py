"""Pull requests: crawled from GitHub, or reconstructed from git, and what they make of the history."""
