"""What `contextd index`, `search` and `watch` print."""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from contextd.domain.code_query import read_query
from contextd.domain.errors import Fault
from contextd.domain.words import split_words
from contextd.edge.cli.terminal import clipped, json_text, visible
from contextd.edge.error_map import body, codes

PREVIEW_LINES: Final = 8
_SHOWN_ERRORS: Final = 10
_SHOWN_NAMES: Final = 3
_TAB: Final = 4
_LEAST_COLUMNS: Final = 20

_RUN: Final = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")
_ENDINGS: Final = ("ing", "ed", "es", "er", "s", "e")
_LEAST_STEM: Final = 4


# --- index ------------------------------------------------------------------------------


def indexed_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """Of index_codebase's answer."""
    did = answer["statistics"]
    skipped = dict(did["skipped"])
    unchanged = skipped.pop("unchanged", 0)
    if did["files_indexed"] or did["files_removed"]:
        yield _headline(f"{_count(did['files_indexed'], 'file')} indexed", did["duration_seconds"])
        found = f"{_count(did['symbols_extracted'], 'symbol')}, {_count(did['chunks_created'], 'chunk')}"
        yield _row("found", found)
    else:
        yield _headline("no file changed", did["duration_seconds"])
    yield _row("unchanged", f"{unchanged:,}")
    yield _row("removed", f"{did['files_removed']:,}")
    yield from _left_out(skipped)
    yield _row("index", f"{did['index_size_mb']:,.1f} MB")
    yield from _problems(answer["errors"], did["files_failed"])


def files_lines(answer: Mapping[str, Any], seconds: float) -> Iterator[str]:
    """Of index_repository's answer."""
    yield _headline(f"{_count(answer['files_indexed'], 'file')} in the index", seconds)
    yield from _left_out(answer["skipped"])
    yield from _problems(answer["errors"], len({each["file"] for each in answer["errors"]}))


def _headline(what: str, seconds: float) -> str:
    lasted = f"{seconds:,.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
    return f"{click.style(what, fg='green', bold=True)} in {lasted}"


def _row(name: str, value: str) -> str:
    return f"  {click.style(f'{name:10s}', dim=True)} {value}"


def _left_out(skipped: Mapping[str, int]) -> Iterator[str]:
    if skipped:
        reasons = sorted(skipped.items(), key=lambda each: (-each[1], each[0]))
        told = ", ".join(f"{number:,} {reason.replace('_', ' ')}" for reason, number in reasons)
        yield _row("left out", f"{sum(skipped.values()):,} ({told})")


def _problems(errors: Sequence[Mapping[str, Any]], files: int) -> Iterator[str]:
    if not errors:
        return
    told = f"in {_count(files, 'file')}; what could be read is indexed"
    yield _row("problems", click.style(told, fg="yellow"))
    for error in errors[:_SHOWN_ERRORS]:
        place = f"{visible(error['file'])}:{error['line']}"
        yield f"    {click.style(place, fg='magenta')}  {visible(error['error'])}"
    if len(errors) > _SHOWN_ERRORS:
        yield f"    and {len(errors) - _SHOWN_ERRORS} more: --json lists them"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# --- search -----------------------------------------------------------------------------


class Hits:
    """The hits of one search, as they are printed. Paths are those that the person can open from here."""

    def __init__(self, query: str, typed: str, below: str, *, full: bool) -> None:
        self._emphasis = Emphasis(query)
        self._typed = typed
        self._below = below
        self._most = None if full else PREVIEW_LINES
        self._columns = shutil.get_terminal_size().columns if sys.stdout.isatty() and not full else None

    def lines(self, answer: Mapping[str, Any]) -> Iterator[str]:
        for hit in answer["results"]:
            yield self._heading(hit)
            yield from self._body(hit)
            yield ""
        yield click.style(summary(answer["statistics"]), dim=True)

    def _heading(self, hit: Mapping[str, Any]) -> str:
        symbol, file = hit["symbol"], hit["file"]
        path = visible(self._shown_path(file["path"]))
        place = f"{click.style(path, fg='magenta')}:{click.style(str(file['start_line']), fg='green')}"
        score = click.style(f"{hit['relevance_score']:.2f}", dim=True)
        return "  ".join([place, *_named(symbol, file), score, *_marks(hit)])

    def _shown_path(self, path: str) -> str:
        inside = path.removeprefix(f"{self._below}/") if self._below else path
        return os.path.normpath(os.path.join(self._typed, inside))  # noqa: PTH118 - as it was typed

    def _body(self, hit: Mapping[str, Any]) -> Iterator[str]:
        file, lines = hit["file"], hit["content"].split("\n")
        # A later part of a long symbol begins with its signature, which stands elsewhere in the file.
        repeated = max(0, len(lines) - (file["end_line"] - file["start_line"] + 1))
        width = len(str(file["end_line"]))
        for at, line in enumerate(lines[: self._most]):
            number = "" if at < repeated else str(file["start_line"] + at - repeated)
            yield self._line(number, width, self._text(line, width))
        more = len(lines) - len(lines[: self._most])
        if more:
            yield self._line("", width, click.style(f"… {_count(more, 'more line')}", dim=True))

    def _line(self, number: str, width: int, text: str) -> str:
        return f"{click.style(f'  {number:>{width}} │', dim=True)} {text}".rstrip()

    def _text(self, line: str, width: int) -> str:
        shown = visible(line.removesuffix("\r").expandtabs(_TAB))
        if self._columns is not None:
            shown = clipped(shown, max(_LEAST_COLUMNS, self._columns - width - 5))
        return self._emphasis.on(shown)


def summary(statistics: Mapping[str, Any]) -> str:
    returned, total = statistics["returned_results"], statistics["total_results"]
    some = f"{returned:,} of " if returned < total else ""
    return f"{some}{_count(total, 'result')} in {statistics['search_duration_ms']:.0f} ms"


def _named(symbol: Mapping[str, Any], file: Mapping[str, Any]) -> Iterator[str]:
    """Lines outside of any symbol bear their file's name, which has been said."""
    if symbol["signature"] or symbol["name"] != file["path"].rpartition("/")[2]:
        name = f"{symbol['container']}.{symbol['name']}" if symbol["container"] else symbol["name"]
        yield click.style(visible(name), bold=True)
    yield click.style(symbol["kind"], fg="cyan")


def _marks(hit: Mapping[str, Any]) -> Iterator[str]:
    for each in hit["symbol"]["ddd_patterns"]:
        yield click.style(each["pattern"].replace("_", " "), fg="blue")
    for mark in ("test", "generated"):
        if hit["file"][mark]:
            yield click.style(mark, dim=True)
    if hit["stale"]:
        yield click.style("changed since", fg="yellow")


class Emphasis:
    """The query's words made to stand out, in identifiers too."""

    def __init__(self, query: str) -> None:
        self._words = frozenset(read_query(query).words)
        self._stems = frozenset(map(_stem, self._words))

    def on(self, text: str) -> str:
        return _RUN.sub(lambda run: self._on_run(run[0]), text)

    def _on_run(self, run: str) -> str:
        parts, lower = split_words(run), run.lower()
        if "".join(parts) in self._words:
            return _strong(run)
        shown, at = "", 0
        for part in parts:
            begin = lower.find(part, at)
            if begin < 0 or len(lower) != len(run):
                # Letters whose small form is longer, or depends on their neighbours.
                return run
            same, end = begin + self._same_letters(part), begin + len(part)
            shown += run[at:begin] + _strong(run[begin:same]) + run[same:end]
            at = end
        return shown + run[at:]

    def _same_letters(self, part: str) -> int:
        """How much of it is a word of the query. The index knows inflections, so it is about stems."""
        if part in self._words or _stem(part) in self._stems:
            return len(part)
        begun = (len(stem) for stem in self._stems if len(stem) >= _LEAST_STEM and part.startswith(stem))
        return max(begun, default=0)


def _stem(word: str) -> str:
    """Roughly: it decides about colours alone."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            return word.removesuffix(ending)
    return word


def _strong(text: str) -> str:
    return click.style(text, fg="red", bold=True) if text else ""


# --- watch ------------------------------------------------------------------------------


def change_line(time: str, changed: Sequence[str], removed: Sequence[str], milliseconds: float) -> str:
    told = [f"{len(changed):,} changed"] if changed else []
    told += [f"{len(removed):,} removed"] if removed else []
    what = f"{', '.join(told)}  {milliseconds:.0f} ms"
    names = [visible(path) for path in (*changed, *removed)]
    more = f" and {len(names) - _SHOWN_NAMES:,} more" if len(names) > _SHOWN_NAMES else ""
    which = ", ".join(names[:_SHOWN_NAMES]) + more
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns - len(f"{time}  {what}  ")
        which = clipped(which, max(_LEAST_COLUMNS, columns))
    return f"{click.style(time, dim=True)}  {what}  {click.style(which, fg='magenta')}"


# --- faults -----------------------------------------------------------------------------


def complain(fault: Fault, as_json: bool) -> int:
    """In words, and for programs as an object besides. Returns the status that the fault stands for."""
    click.secho(f"contextd: {visible(fault.problem)}", fg="red", err=True)
    click.echo(f"  {visible(fault.remedy)}", err=True)
    if as_json:
        click.echo(json_text(body(fault)))
    return codes(fault).exit
