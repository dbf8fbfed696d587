"""Virtual environments as of a date: interpreters, the installer, package indexes."""
