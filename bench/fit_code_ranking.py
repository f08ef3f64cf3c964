"""Fit the weights of search_code's signals, on repositories that are for development.

python bench/fit_code_ranking.py PATH            print what was fitted
python bench/fit_code_ranking.py PATH --write    keep it as src/contextd/services/code_weights.json

PATH is a folder with the repositories that `questions/development/` names, each in a folder of that name.
What is asked are doc sentences and a few words of each, among everything and among functions without tests;
names of symbols, names that are nearly right, and names of fields and the like, which nothing defines; and
the questions by hand, about the repositories as they are.
The weights are those under which the answer is likeliest to be first
(a softmax over the candidates of each question, with a small penalty on large weights); then they are
scaled so that a score is the share of hits of that score which were the answer.
"""

import argparse
import asyncio
import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from code_corpus import FUNCTIONS, Asked, Repository, chunks_of, repositories, shorter
from code_questions import Place, Question
from contextd.adapters import code_static, minilm
from contextd.domain.code_store import TEST, CodeFilter
from contextd.services import code_ranking
from contextd.services.code_ranking import SIGNALS, TYPES, CodeRanking, Weighed, signals_of
from contextd.services.code_search import RERANKED
from developer_questions import prepare_whole
from misremembered import misremembered
from question_places import placed

Floats = NDArray[np.floating]

_FILE: Final = Path(code_ranking.__file__).with_name("code_weights.json")
_BY_WORDS: Final = frozenset({"words", "words_rank"})
_BY_VECTOR: Final = frozenset({"vector", "vector_rank", "vector_lead", "name_meaning", "typical"})
_BY_TEXT_MODEL: Final = frozenset({"closer", "closer_rank", "closer_lead"})
_NAMED: Final[frozenset[Weighed]] = frozenset({"identifier", "mention"})
"""A search for a name does not ask the text model."""
_FIXED: Final = {"generated": -1.0}
"""Not fitted: generated files are left out of the trees that are searched here."""
_LEAST: Final = {"test": -2.0, "document": -2.0}
"""Bounds: no answer here is a test or a document, which elsewhere are sometimes what is looked for."""
_PENALTY: Final = 0.001
_STEPS: Final = 300
_WORDS_BY_HAND: Final = 0.25
_QUESTIONS_BY_HAND: Final = 1.5
"""What those by hand weigh, all together, beside all that are made of comments."""
_NEWTON_STEPS: Final = 25
_NAMES: Final = 150
"""Symbols of each repository that are asked for by name."""
_NEARLY: Final = 2.0
"""What names that are nearly right weigh, all together, beside those that only stand somewhere."""
_MENTIONS: Final = 300
"""Words inside of types that are tried as names; those that nothing defines are kept."""
_WRITTEN: Final = re.compile(r"\b(?:[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+|[a-z]+_\w+)\b")


@dataclass(frozen=True)
class Case:
    """A question's candidates: their signals, and which of them is the answer."""

    asked: Asked
    named: bool
    signals: Floats
    answers: NDArray[np.bool_]
    weight: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the ranking of search_code.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    cases, names = asyncio.run(_cases(chosen.path))
    weights: dict[str, dict[str, float]] = {}
    for kind, own in cases.items():
        weights |= _rows(kind, own)
    about = {
        "made_by": "bench/fit_code_ranking.py",
        "on": f"{datetime.now(UTC):%Y-%m-%d}",
        "models": [code_static.MODEL, minilm.MODEL],
        "repositories": names,
        "questions": {kind: len(own) for kind, own in cases.items()},
    }
    text = json.dumps({"about": about, "weights": weights}, indent=1)
    if chosen.write:
        _FILE.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


async def _cases(folder: Path) -> tuple[dict[str, list[Case]], list[str]]:
    """By kind of query. Questions are asked by hand, about the repositories as they are."""
    described: list[Case] = []
    named: list[Case] = []
    mentioned: list[Case] = []
    nearly: list[Case] = []
    async with repositories(folder, tests=True) as found:
        names = [each.name for each in found]
        for repository in found:
            for questions in (repository.questions, shorter(repository.questions)):
                described += [_case(await repository.asked(each, CodeFilter())) for each in questions]
                functions = [await repository.asked(each, FUNCTIONS) for each in questions]
                described += [_case(_without_tests(asked)) for asked in functions]
            named += [_case(asked, named=True) for asked in await _named(repository)]
            mentioned += [_case(asked) for asked in await _mentioned(repository)]
            nearly += [_case(asked, named=True) for asked in await _misremembered(repository)]
    async with repositories(folder, tests=True, prepare=prepare_whole) as found:
        by_hand = [
            await each.asked(question, CodeFilter()) for each in found for question in await placed(each)
        ]
    words = [_case(asked) for asked in by_hand if asked.query.kind == "words"]
    asked = [_case(asked) for asked in by_hand if asked.query.kind == "question"]
    cases = {
        "words": _weighed(described, 1.0) + _weighed(words, _WORDS_BY_HAND),
        "question": _weighed(described, 1.0) + _weighed(asked, _QUESTIONS_BY_HAND),
        "identifier": _weighed(named, 1.0),
        "mention": _weighed(mentioned, 1.0) + _weighed(nearly, _NEARLY),
    }
    return cases, names


def _weighed(cases: Sequence[Case], weight: float) -> list[Case]:
    """All of them together count so much, few or many. Where no candidate answers, nothing is learnt."""
    kept = [case for case in cases if case.answers.any()]
    return [replace(case, weight=weight / len(kept)) for case in kept]


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


async def _misremembered(repository: Repository) -> list[Asked]:
    """Names that no symbol has, each nearly that of the one that is meant."""
    chance = random.Random(1)
    some = chance.sample(repository.questions, min(_NAMES, len(repository.questions)))
    asked = []
    for question in some:
        if name := misremembered(question.best.name, chance):
            one = await repository.asked(replace(question, text=name), CodeFilter())
            if one.query.kind == "identifier" and not one.found.by_name:
                asked.append(one)
    return asked


async def _mentioned(repository: Repository) -> list[Asked]:
    """Names that no symbol has, each with the lines of types on which it stands."""
    chance = random.Random(1)
    places: dict[str, list[Place]] = {}
    for row, text in await chunks_of(repository, CodeFilter(kinds=TYPES)):
        for at, line in enumerate(text.split("\n"), start=row.start_line):
            for name in _WRITTEN.findall(line):
                places.setdefault(name, []).append(Place(row.path, name=name, line=at))
    asked = []
    for name in chance.sample(sorted(places), min(_MENTIONS, len(places))):
        one = await repository.asked(Question(name, tuple(places[name])), CodeFilter())
        if one.query.kind == "identifier" and not one.found.by_name:
            asked.append(one)
    return asked


def _case(asked: Asked, *, named: bool = False) -> Case:
    """As a search sees its candidates first: without the text model."""
    rows = list(signals_of(asked.query, asked.found, {}))
    return _table(asked, rows, named=named)


def _read_closer(case: Case, first: Mapping[str, Mapping[str, float]]) -> Case:
    """As a search sees the best of them again. An answer that is not among them is lost."""
    asked = case.asked
    order = CodeRanking(first).rank(asked.query, "hybrid", asked.found, {})
    best = [each.row.id for each in order[:RERANKED]]
    narrowed = replace(asked.found, rows={chunk: asked.found.rows[chunk] for chunk in best})
    rows = list(signals_of(asked.query, narrowed, {chunk: asked.closer[chunk] for chunk in best}))
    return replace(_table(asked, rows, named=case.named), weight=case.weight)


def _table(asked: Asked, rows: Sequence[tuple[int, dict[str, float]]], *, named: bool) -> Case:
    answers = [_is_named(asked, chunk) if named else asked.is_answer(chunk) for chunk, _ in rows]
    table = [[signals.get(name, 0.0) for name in SIGNALS] for _, signals in rows]
    signals = np.array(table, np.float32).reshape(len(rows), len(SIGNALS))
    return Case(asked, named, signals, np.array(answers, dtype=bool))


def _is_named(asked: Asked, chunk: int) -> bool:
    """Any definition of that name will do, of the type if one was named."""
    row = asked.found.rows[chunk]
    best = asked.question.best
    if row.symbol is None or row.part or row.symbol.name != best.name:
        return False
    return "." not in asked.question.text or row.symbol.container == best.container


def _rows(kind: str, cases: Sequence[Case]) -> dict[str, dict[str, float]]:
    every = frozenset(SIGNALS) - {"spread", *_FIXED}
    first = _fitted(cases, every - _BY_TEXT_MODEL)
    rows = {
        f"{kind}/hybrid": first,
        f"{kind}/keyword": _fitted(cases, every - _BY_TEXT_MODEL - _BY_VECTOR),
    }
    if kind != "mention":
        rows[f"{kind}/vector"] = _fitted(cases, every - _BY_TEXT_MODEL - _BY_WORDS - {"definition"})
    if kind not in _NAMED:
        # By its own kind, whatever the query's would be: the same questions serve several kinds.
        keys = [f"{each}/hybrid" for each in get_args(Weighed)]
        again = [_read_closer(case, dict.fromkeys(keys, first)) for case in cases]
        rows[f"{kind}/hybrid/closer"] = _fitted([case for case in again if case.answers.any()], every)
    return rows


def _fitted(cases: Sequence[Case], use: Iterable[str]) -> dict[str, float]:
    columns = [at for at, name in enumerate(SIGNALS) if name in use]
    weights = np.zeros(len(SIGNALS))
    weights[columns] = _softmax([replace(case, signals=case.signals[:, columns]) for case in cases])
    for at, name in enumerate(SIGNALS):
        weights[at] = max(weights[at], _LEAST.get(name, -np.inf))
    scale, bias = _calibrated(cases, weights)
    fitted: dict[str, float] = {
        name: round(float(scale * weights[at]), 3) for at, name in enumerate(SIGNALS) if weights[at]
    }
    return {"bias": round(bias, 3), **fitted, **_FIXED}


def _softmax(cases: Sequence[Case]) -> Floats:
    """By Adam; the problem is small and smooth."""
    most = max(len(case.signals) for case in cases)
    signals = np.zeros((len(cases), most, cases[0].signals.shape[1]), np.float32)
    answers, empty = np.zeros((len(cases), most), bool), np.ones((len(cases), most), bool)
    for at, case in enumerate(cases):
        count = len(case.signals)
        signals[at, :count], answers[at, :count], empty[at, :count] = case.signals, case.answers, False
    worth = np.array([case.weight for case in cases], np.float32)
    worth /= worth.sum()
    weights = np.zeros(signals.shape[2], np.float32)
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        scores = np.where(empty, -np.inf, signals @ weights)
        share = np.exp(scores - scores.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        wanted = share * answers
        wanted /= np.maximum(wanted.sum(axis=1, keepdims=True), 1e-12)
        wrong = (share - wanted) * worth[:, None]
        slope = _PENALTY * weights + np.einsum("qcs,qc->s", signals, wrong)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        weights = weights - 0.05 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-9)
    return weights.astype(float)


def _calibrated(cases: Sequence[Case], weights: Floats) -> tuple[float, float]:
    """Scale and bias under which the best ten of each question are as likely answers as they say."""
    scores, answers, counts = [], [], []
    for case in cases:
        total = case.signals @ weights
        best = np.argsort(-total)[:10]
        scores.append(total[best])
        answers.append(case.answers[best])
        counts.append(np.full(len(best), case.weight))
    x, y, worth = np.concatenate(scores), np.concatenate(answers).astype(float), np.concatenate(counts)
    table = np.column_stack([x, np.ones_like(x)])
    share = np.average(y, weights=worth)
    line = np.array([0.0, np.log(share / (1 - share))])
    for _ in range(_NEWTON_STEPS):
        share = 1 / (1 + np.exp(-table @ line))
        bend = (table * (worth * share * (1 - share))[:, None]).T @ table
        line = line - np.linalg.solve(bend, table.T @ (worth * (share - y)))
    return float(line[0]), float(line[1])


if __name__ == "__main__":
    main()
