"""`python -m tutti`: the command line, for interpreters whose scripts are not on the path."""

from __future__ import annotations

from tutti.cli import main

if __name__ == "__main__":
    main()
