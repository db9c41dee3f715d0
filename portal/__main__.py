"""`python -m portal` is the same as the `portal` command."""

from portal.cli.main import main

if __name__ == "__main__":
    main()
