"""The files of the models that ship with contextd: where they are, and whether they are the right ones."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from contextd.domain.errors import EmbedderUnavailable

SHIPPED: Final = Path(__file__).parent / "models"
REINSTALL: Final = "install contextd again: 'pip install --force-reinstall contextd'"


def check(file: Path, sha256: str, model: str) -> None:
    """As `checked`, without its content in memory: for a file that a library opens by its path."""
    with _failures_named(file), file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    _compare(file, found, sha256, model)


def checked(file: Path, sha256: str, model: str) -> bytes:
    """A model's files belong together; others would give vectors that mean nothing.

    Raises EmbedderUnavailable.
    """
    with _failures_named(file):
        data = file.read_bytes()
    _compare(file, hashlib.sha256(data).hexdigest(), sha256, model)
    return data


@contextmanager
def _failures_named(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EmbedderUnavailable(f"the model's file {file.name} cannot be read", REINSTALL) from error


def _compare(file: Path, found: str, sha256: str, model: str) -> None:
    if found != sha256:
        raise EmbedderUnavailable(f"{file.name} is not the file that belongs to {model}", REINSTALL)
