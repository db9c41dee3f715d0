"""Entry point of `python -m portal`, which is the same as the `portal` command."""

from portal.cli.main import main

if __name__ == "__main__":
    main()
