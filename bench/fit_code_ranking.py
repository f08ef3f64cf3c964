"""Fit the weights of search_code's signals, on repositories that are for development.

python bench/fit_code_ranking.py PATH            print what was fitted
python bench/fit_code_ranking.py PATH --write    keep it as src/contextd/services/code_weights.json

PATH is a folder with one repository in each folder, of Go and Python. Questions are doc sentences, a few
words of each, and names of symbols; they are asked among everything, and among functions without tests.
The weights are those under which the answer is likeliest to be first
(a softmax over the candidates of each question, with a small penalty on large weights); then they are
scaled so that a score is the share of hits of that score which were the answer.
"""

import argparse
import asyncio
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from code_corpus import FUNCTIONS, Asked, Repository, repositories, shorter
from contextd.domain.code_store import TEST, CodeFilter
from contextd.services import code_ranking
from contextd.services.code_ranking import SIGNALS, signals_of

Floats = NDArray[np.float64]

_FILE: Final = Path(code_ranking.__file__).with_name("code_weights.json")
_BY_WORDS: Final = frozenset({"words", "words_rank"})
_BY_VECTOR: Final = frozenset({"vector", "vector_rank"})
_BY_TEXT_MODEL: Final = frozenset({"closer", "closer_rank"})
_FIXED: Final = {"generated": -1.0}
"""Not fitted: generated files are left out of the trees that are searched here."""
_LEAST: Final = {"test": -2.0, "document": -2.0}
"""Bounds: no answer here is a test or a document, which elsewhere are sometimes what is looked for."""
_PENALTY: Final = 0.001
_STEPS: Final = 300
_NEWTON_STEPS: Final = 25
_NAMES: Final = 150
"""Symbols of each repository that are asked for by name."""


@dataclass(frozen=True)
class Case:
    """A question's candidates: their signals, and which of them is the answer."""

    signals: Floats
    answers: NDArray[np.bool_]


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the ranking of search_code.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    by_words, by_name, names = asyncio.run(_cases(chosen.path))
    weights = {
        **_rows("words", by_words),
        **_rows("identifier", by_name),
    }
    about = {
        "made_by": "bench/fit_code_ranking.py",
        "on": f"{datetime.now(UTC):%Y-%m-%d}",
        "repositories": names,
        "questions": {"words": len(by_words), "identifier": len(by_name)},
    }
    text = json.dumps({"about": about, "weights": weights}, indent=1)
    if chosen.write:
        _FILE.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


async def _cases(folder: Path) -> tuple[list[Case], list[Case], list[str]]:
    by_words: list[Case] = []
    by_name: list[Case] = []
    async with repositories(folder, tests=True) as found:
        for repository in found:
            for questions in (repository.questions, shorter(repository.questions)):
                by_words += [_case(await repository.asked(each, CodeFilter())) for each in questions]
                functions = [await repository.asked(each, FUNCTIONS) for each in questions]
                by_words += [_case(_without_tests(asked)) for asked in functions]
            by_name += [_case(asked, named=True) for asked in await _named(repository)]
    kept = [case for case in by_words if case.answers.any()]
    return kept, [case for case in by_name if case.answers.any()], [each.name for each in found]


def _without_tests(asked: Asked) -> Asked:
    rows = {chunk: row for chunk, row in asked.found.rows.items() if not row.marks & TEST}
    found = replace(
        asked.found,
        by_words=[each for each in asked.found.by_words if each[0] in rows],
        by_vector=[each for each in asked.found.by_vector if each[0] in rows],
        by_name=[chunk for chunk in asked.found.by_name if chunk in rows],
        rows=rows,
    )
    return replace(asked, found=found, closer={chunk: asked.closer[chunk] for chunk in rows})


async def _named(repository: Repository) -> list[Asked]:
    """Names of symbols, alone and with their type, as people ask for them."""
    chance = random.Random(1)
    some = chance.sample(repository.questions, min(_NAMES, len(repository.questions)))
    asked = []
    for at, question in enumerate(some):
        best = question.best
        name = f"{best.container}.{best.name}" if best.container and at % 3 == 0 else best.name
        asked.append(await repository.asked(replace(question, text=name), CodeFilter()))
    return asked


def _case(asked: Asked, *, named: bool = False) -> Case:
    rows = list(signals_of(asked.query, asked.found, asked.closer))
    answers = [_is_named(asked, chunk) if named else asked.is_answer(chunk) for chunk, _ in rows]
    table = [[signals.get(name, 0.0) for name in SIGNALS] for _, signals in rows]
    return Case(np.array(table).reshape(len(rows), len(SIGNALS)), np.array(answers, dtype=bool))


def _is_named(asked: Asked, chunk: int) -> bool:
    """Any definition of that name will do, of the type if one was named."""
    row = asked.found.rows[chunk]
    best = asked.question.best
    if row.symbol is None or row.part or row.symbol.name != best.name:
        return False
    return "." not in asked.question.text or row.symbol.container == best.container


def _rows(kind: str, cases: Sequence[Case]) -> dict[str, dict[str, float]]:
    every = frozenset(SIGNALS) - {"spread", *_FIXED}
    return {
        f"{kind}/hybrid": _fitted(cases, every - _BY_TEXT_MODEL),
        f"{kind}/hybrid/closer": _fitted(cases, every),
        f"{kind}/keyword": _fitted(cases, every - _BY_TEXT_MODEL - _BY_VECTOR),
        f"{kind}/vector": _fitted(cases, every - _BY_TEXT_MODEL - _BY_WORDS - {"definition"}),
    }


def _fitted(cases: Sequence[Case], use: Iterable[str]) -> dict[str, float]:
    columns = [at for at, name in enumerate(SIGNALS) if name in use]
    weights = np.zeros(len(SIGNALS))
    weights[columns] = _softmax([Case(case.signals[:, columns], case.answers) for case in cases])
    for at, name in enumerate(SIGNALS):
        weights[at] = max(weights[at], _LEAST.get(name, -np.inf))
    scale, bias = _calibrated(cases, weights)
    fitted: dict[str, float] = {
        name: round(float(scale * weights[at]), 3) for at, name in enumerate(SIGNALS) if weights[at]
    }
    return {"bias": round(bias, 3), **fitted, **_FIXED}


def _softmax(cases: Sequence[Case]) -> Floats:
    """By Adam; the problem is small and smooth."""
    weights = np.zeros(cases[0].signals.shape[1])
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        slope = _PENALTY * weights
        for case in cases:
            share = _shares(case.signals @ weights)
            wanted = share * case.answers
            slope = slope + case.signals.T @ (share - wanted / max(wanted.sum(), 1e-12)) / len(cases)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        weights = weights - 0.05 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-9)
    return weights


def _shares(scores: Floats) -> Floats:
    grown: Floats = np.exp(scores - scores.max())
    shares: Floats = grown / grown.sum()
    return shares


def _calibrated(cases: Sequence[Case], weights: Floats) -> tuple[float, float]:
    """Scale and bias under which the best ten of each question are as likely answers as they say."""
    scores, answers = [], []
    for case in cases:
        total = case.signals @ weights
        best = np.argsort(-total)[:10]
        scores.append(total[best])
        answers.append(case.answers[best])
    x, y = np.concatenate(scores), np.concatenate(answers).astype(float)
    table = np.column_stack([x, np.ones_like(x)])
    line = np.array([0.0, np.log(y.mean() / (1 - y.mean()))])
    for _ in range(_NEWTON_STEPS):
        share = 1 / (1 + np.exp(-table @ line))
        bend = (table * (share * (1 - share))[:, None]).T @ table
        line = line - np.linalg.solve(bend, table.T @ (share - y))
    return float(line[0]), float(line[1])


if __name__ == "__main__":
    main()
