"""Pairs from a repository's history: what a commit says, and the code that it changed."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from contextd.domain.words import split_words
from contextd.languages import Languages
from pair import Pair

_COMMITS: Final = 2_000
_MOST_FILES: Final = 6
_MOST_HUNKS: Final = 3
_FEWEST_LINES: Final = 4
_MOST_LINES: Final = 60
_BORDER: Final = "\x1e"
_NOISE: Final = re.compile(
    r"(?i)^(?:merge|revert|bump|release|prepare|version|update (?:dep|go\.|change)|v?\d+\.\d|wip|fixup"
    r"|chore\(deps)"
)
_PREFIX: Final = re.compile(r"^(?:[a-z]+(?:\([^)]*\))?!?|\[[^\]]*\]|[\w/.-]{2,30}):\s+")
_NUMBER: Final = re.compile(r"\s*\(?#\d+\)?\.?$")
_SENTENCE: Final = re.compile(r"^([A-Z][^`*#|]{30,300}?[.!?])(?:\s|$)")
_TRAILER: Final = re.compile(r"(?im)^(?:[\w-]+-by|change-id|fixes|closes|refs?|see|pr-url|cc):.*$")


def commit_pairs(repository: str, git_dir: Path) -> Iterator[Pair]:
    languages = Languages()
    command = ["git", f"--git-dir={git_dir}", "log", "--no-merges", f"-n{_COMMITS}", "-p", "-U4"]
    options = ["--no-color", "--no-renames", "--diff-filter=AM", f"--format={_BORDER}%s%n%b%x1f"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, errors="replace") as log:
        assert log.stdout is not None
        for entry in _entries(log.stdout):
            message, _, diff = entry.partition("\x1f")
            subject, _, body = message.partition("\n")
            asked = _cleaned(subject)
            if asked is None:
                continue
            text = _TRAILER.sub("", body).strip()
            if len(split_words(text)) > 12:
                yield Pair("commit", repository, "text", asked, text[:2_000])
            told = _SENTENCE.match(" ".join(text.split()))
            for language, hunk in _hunks(diff, languages):
                yield Pair("change", repository, language, asked, hunk)
                if told and len(split_words(told[1])) > 6:
                    yield Pair("report", repository, language, told[1], hunk)


def _entries(lines: Iterator[str]) -> Iterator[str]:
    held: list[str] = []
    for line in lines:
        if line.startswith(_BORDER):
            if held:
                yield "".join(held)
            held = [line[1:]]
        elif len(held) < 3_000:
            held.append(line)
    if held:
        yield "".join(held)


def _cleaned(subject: str) -> str | None:
    if _NOISE.search(subject):
        return None
    text = _NUMBER.sub("", _PREFIX.sub("", subject)).strip()
    return text if len(split_words(text)) > 2 and not _NOISE.search(text) else None


def _hunks(diff: str, languages: Languages) -> list[tuple[str, str]]:
    """The new side of the largest hunks, of a commit that is about few files."""
    files = diff.split("\ndiff --git ")
    if len(files) > _MOST_FILES + 1:
        return []
    found: list[tuple[int, str, str]] = []
    for file in files[1:]:
        path = file.split("\n", 1)[0].rpartition(" b/")[2]
        language = languages.of(path)
        if language is None or not language.is_code or "test" in path.lower() or "vendor/" in path:
            continue
        for hunk in re.split(r"^@@ .* @@", file, flags=re.MULTILINE)[1:]:
            lines = hunk.split("\n")
            new = [lines[0].strip(), *(line[1:] for line in lines[1:] if line[:1] in ("+", " "))]
            added = sum(line.startswith("+") for line in lines)
            if len(new) >= _FEWEST_LINES and added:
                found.append((added, language.name, "\n".join(new[:_MOST_LINES])))
    found.sort(key=lambda each: -each[0])
    return [(language, hunk) for _, language, hunk in found[:_MOST_HUNKS]]
