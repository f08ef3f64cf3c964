"""Semantic versions, as semver.org 2.0.0 defines them: strict to read, compared by precedence."""

import re
from dataclasses import dataclass
from typing import Final

MAX_VERSION_LENGTH: Final = 64
"""For what is to be kept; whatever is kept can be read."""

_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_PRERELEASE: Final = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-({_PRERELEASE}(?:\.{_PRERELEASE})*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)


@dataclass(frozen=True, slots=True)
class Version:
    major: int
    minor: int
    patch: int
    prerelease: str = ""
    build: str = ""

    @classmethod
    def parse(cls, text: str) -> "Version":
        """Raises ValueError for anything that is not exactly a semantic version."""
        found = _SEMVER.fullmatch(text)
        if found is None:
            raise ValueError("not a semantic version")
        major, minor, patch, prerelease, build = found.groups()
        return cls(int(major), int(minor), int(patch), prerelease or "", build or "")

    def __str__(self) -> str:
        prerelease = f"-{self.prerelease}" if self.prerelease else ""
        build = f"+{self.build}" if self.build else ""
        return f"{self.major}.{self.minor}.{self.patch}{prerelease}{build}"

    def is_above(self, other: "Version") -> bool:
        """By precedence, to which the build says nothing."""
        return self._precedence > other._precedence

    def next_patch(self) -> "Version":
        """The least release above this one: of a pre-release, the release it leads to."""
        return Version(self.major, self.minor, self.patch + (not self.prerelease))

    @property
    def _precedence(self) -> tuple[object, ...]:
        """Numbers go before words, and any pre-release goes before its release."""
        parts = tuple(
            (0, int(part), "") if part.isdigit() else (1, 0, part)
            for part in self.prerelease.split(".")
            if part
        )
        return self.major, self.minor, self.patch, not self.prerelease, parts
