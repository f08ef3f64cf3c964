"""How well search_code finds functions by a sentence about them, and symbols by their names.

python bench/code_quality.py PATH

PATH is a folder with one repository in each folder, of Go and Python, which the weights were not fitted on.
Each repository is searched alone. The first tables search functions and methods, tests left out; another
one everything that is indexed, tests and documents too.
"""

import argparse
import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from code_corpus import FUNCTIONS, Asked, Repository, repositories, shorter
from code_questions import Question
from contextd.domain.callers import Caller
from contextd.domain.code_store import CodeFilter
from contextd.services.code_ranking import SIGNALS, CodeRanking, Mode, Signal
from contextd.services.code_search import Ask
from ranking_scores import SYSTEMS, Score, print_systems, ranked, read_closer, score_of
from report import Table

_NAMES: Final = 150


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure search_code's ranking.")
    parser.add_argument("path", type=Path)
    asyncio.run(_measure(parser.parse_args().path))


async def _measure(folder: Path) -> None:
    async with repositories(folder, tests=False) as found:
        print("\n### Functions by a sentence\n")
        asked = await _all(found, lambda each: each.questions, FUNCTIONS)
        print_systems(asked, SYSTEMS)
        print("\n### Functions by a few words\n")
        print_systems(await _all(found, lambda each: shorter(each.questions), FUNCTIONS), SYSTEMS)
        print("\n### What each signal is worth\n")
        _print_ablation(asked)
    async with repositories(folder, tests=True) as found:
        print("\n### Among everything, tests and documents too\n")
        print_systems(await _all(found, lambda each: each.questions, CodeFilter()), SYSTEMS)
        print("\n### Symbols by their names\n")
        await _print_names(found)


async def _all(
    found: Sequence[Repository], questions: Callable[[Repository], list[Question]], filter: CodeFilter
) -> list[Asked]:
    return [await each.asked(question, filter) for each in found for question in questions(each)]


def _print_ablation(asked: Sequence[Asked]) -> None:
    quick, close = _both(asked, CodeRanking())
    rows = [("all signals", f"{quick.mrr:.3f}", "", f"{close.mrr:.3f}", "")]
    for left_out in SIGNALS:
        kept: tuple[Signal, ...] = tuple(signal for signal in SIGNALS if signal != left_out)
        one, other = _both(asked, CodeRanking(signals=kept))
        rows.append(
            (
                f"without {left_out}",
                f"{one.mrr:.3f}",
                f"{one.mrr - quick.mrr:+.3f}",
                f"{other.mrr:.3f}",
                f"{other.mrr - close.mrr:+.3f}",
            )
        )
    print(Table(("MRR@10", "hybrid", "", "hybrid, read closer", ""), tuple(rows)).markdown())


def _both(asked: Sequence[Asked], ranking: CodeRanking) -> tuple[Score, Score]:
    return (
        score_of(asked, lambda one: ranked(ranking, one, "hybrid")),
        score_of(asked, lambda one: read_closer(ranking, one)),
    )


async def _print_names(found: Sequence[Repository]) -> None:
    """Through the whole search: the first hit must be a definition of that name."""
    chance = random.Random(7)
    rows = []
    modes: tuple[Mode, ...] = ("hybrid", "keyword")
    for mode in modes:
        right = total = 0
        for repository in found:
            some = chance.sample(repository.questions, min(_NAMES, len(repository.questions)))
            for question in some:
                ask = Ask(repository.indexed.root, question.best.name, 1, mode)
                hits = (await repository.house.code.search.search(ask, Caller())).hits
                right += bool(hits and hits[0].row.symbol and hits[0].row.symbol.name == question.best.name)
                total += 1
        rows.append((f"search_code, {mode}", str(total), f"{right / total:.3f}"))
    print(Table(("", "names", "definition first"), tuple(rows)).markdown())


if __name__ == "__main__":
    main()
