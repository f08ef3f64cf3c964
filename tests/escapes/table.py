"""Verdicts side by side, as a page of Markdown."""

from collections.abc import Iterator, Mapping, Sequence

from escapes.attempts import Sandbox
from escapes.case import KINDS, Case
from escapes.ground import User
from escapes.suite import Verdict

Verdicts = Mapping[tuple[Case, str, User], Verdict]
"""By attack, name of the sandbox, and user."""


def page(cases: Sequence[Case], sandboxes: Sequence[Sandbox], users: Sequence[User], all: Verdicts) -> str:
    return "\n".join([*_counts(cases, sandboxes, users, all), "", *_rows(cases, sandboxes, users, all)])


def _counts(
    cases: Sequence[Case], sandboxes: Sequence[Sandbox], users: Sequence[User], all: Verdicts
) -> Iterator[str]:
    yield from _head(["attacks that work outside, and stay open inside", *(user.name for user in users)])
    for sandbox in sandboxes:
        cells = []
        for user in users:
            words = [all[case, sandbox.name, user].word for case in cases]
            tried = len(words) - words.count("not applicable")
            refused = f", {words.count('refused')} refused to run" if "refused" in words else ""
            cells.append(f"{words.count('open')} of {tried}{refused}")
        yield _row([sandbox.name, *cells])


def _rows(
    cases: Sequence[Case], sandboxes: Sequence[Sandbox], users: Sequence[User], all: Verdicts
) -> Iterator[str]:
    for kind in dict.fromkeys(case.kind for case in cases):
        yield from _head([KINDS[kind], *(sandbox.name for sandbox in sandboxes)])
        for case in cases:
            if case.kind == kind:
                cells = [{user: all[case, box.name, user] for user in users} for box in sandboxes]
                yield _row([case.name, *map(_cell, cells)])
        yield ""


def _cell(verdicts: Mapping[User, Verdict]) -> str:
    """One word where all users had the same. Who could not try, or was refused, tells of others nothing."""
    tried = {user.name: it.word for user, it in verdicts.items() if it.word != "not applicable"}
    words = {name: word for name, word in tried.items() if word != "refused"} or tried
    if not words:
        return "not applicable"
    if len(set(words.values())) == 1:
        return _marked(next(iter(words.values())))
    return ", ".join(f"{_marked(word)} as {name}" for name, word in words.items() if word != "held")


def _marked(word: str) -> str:
    return f"**{word}**" if word == "open" else word


def _head(cells: Sequence[str]) -> Iterator[str]:
    yield _row(cells)
    yield _row(["---"] * len(cells))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
