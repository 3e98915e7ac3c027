"""Let `python -m operant` be the command."""

from operant.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
