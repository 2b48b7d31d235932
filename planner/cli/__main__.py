"""`python -m planner.cli` is the command line too."""

from planner.cli import main

if __name__ == "__main__":
    main()
