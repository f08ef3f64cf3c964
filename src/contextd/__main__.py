"""`python -m contextd` and the `contextd` command."""

import sys


def main() -> None:
    from contextd.edge.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
