"""`python -m perfquarry`: the command."""

from perfquarry.flows.cli import entry

if __name__ == "__main__":
    entry()
