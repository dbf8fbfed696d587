"""`python -m perfquarry`: the command."""

from perfquarry.flows.cli import main

if __name__ == "__main__":
    main()
