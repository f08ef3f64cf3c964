"""Files of a project: read and replaced beneath its folder, and nowhere else."""

from dataclasses import dataclass, field
from typing import Protocol

Stamp = tuple[int, ...]
"""Which file it was, and when it last changed."""


@dataclass(frozen=True, slots=True)
class ProjectFile:
    path: str
    """Relative to the folder, with every link in it followed: one file has one."""
    data: bytes | None = field(repr=False)
    """None where nothing is there yet."""
    stamp: Stamp | None = None


class ProjectFiles(Protocol):
    """Whatever links and names say, and however they change meanwhile, nothing outside is touched.

    Both raise OutsideProject, HardLinked, BadPath for what is no plain file, Forbidden where the system
    says no, NotFound for a folder that is not there, and Unavailable.
    """

    def look(self, folder: str, path: str, most: int) -> ProjectFile:
        """The file at a path relative to the folder. Raises TooLarge for more than `most` bytes."""

    def put(self, folder: str, file: ProjectFile, data: bytes) -> None:
        """Have a file hold this instead, wholly or not at all; durable when it returns.

        Raises FileChanged when it is not any more what `look` found. Missing folders are made.
        """
