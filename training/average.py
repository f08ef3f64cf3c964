"""The mean of several trained tables: what they differ in is mostly chance.

PYTHONPATH=src:bench python training/average.py OUT TABLE [TABLE ...]

They must be of one vocabulary and have started from the same rows, so that their numbers mean the same.
"""

import argparse
from pathlib import Path

import jax

from export_static import export
from static_model import loaded


def main() -> None:
    parser = argparse.ArgumentParser(description="Average static models.")
    parser.add_argument("out", type=Path)
    parser.add_argument("tables", type=Path, nargs="+")
    chosen = parser.parse_args()
    tables = [loaded(table) for table in chosen.tables]
    export(jax.tree.map(lambda *each: sum(each) / len(each), *tables), chosen.out)


if __name__ == "__main__":
    main()
