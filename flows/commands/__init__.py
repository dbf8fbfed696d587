"""Commands of the command line, one module a group; each has `register(app)`."""
