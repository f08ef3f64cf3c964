"""An answer made to fit its budget: long texts are cut first, then emptied; items are dropped last.

Fields stay: a client that knows the answer's schema finds every one of them, only shorter.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from contextd.domain.answers import Answer, Count
from contextd.services.answer_outline import Fitted, Group, Handle, Outline

_WORTH_CUTTING: Final = 24
_WORTH_EMPTYING: Final = 6
_BESIDE_A_MARK: Final = 12
"""Tokens that a text keeps besides the mark, or it is emptied instead."""
_TRIES: Final = 6


def fitted(
    whole: Answer, budget: int, count: Count, handle: Handle, schema: Mapping[str, Any] | None = None
) -> Fitted:
    """The answer within the budget, or as near to it as its fields allow.

    `schema` is the answer's: it tells which objects are open, so that entries of theirs may go.
    """
    if whole.tokens_used <= budget:
        return Fitted(whole)
    best = _Fitting(Outline(whole, schema or {}, count, handle), budget).fit()
    saved = whole.tokens_used - best.answer.tokens_used
    if saved <= 0:
        # So little that marks and handles cost more than they save.
        return Fitted(whole)
    return replace(best, answer=replace(best.answer, tokens_cut=saved))


class _Fitting:
    def __init__(self, outline: Outline, budget: int) -> None:
        self._outline = outline
        self._budget = budget

    def fit(self) -> Fitted:
        """The first way that is good enough; the last when none is."""
        best = self._outline.put_together()
        for way in (self._cut_texts, self._empty_texts, self._drop_items, self._cut_names, self._drop_all):
            for smaller in way(best):
                best = smaller
                if best.answer.tokens_used <= self._budget:
                    return best
        return best

    def _over(self, best: Fitted) -> int:
        return best.answer.tokens_used - self._budget

    def _cut_texts(self, best: Fitted, *, named: bool = False) -> Iterator[Fitted]:
        """All long texts down to the same length, as far as it takes."""
        texts = [
            text
            for text in self._outline.texts.values()
            if text.named is named and text.tokens > _WORTH_CUTTING
        ]
        least = self._outline.mark_prices.first + _BESIDE_A_MARK
        wanted = 0
        for _ in range(_TRIES):
            wanted += self._over(best)
            cap = max(least, _level([text.tokens for text in texts], wanted))
            for text in texts:
                text.room = cap if text.tokens > cap else None
            best = self._outline.put_together()
            yield best
            if cap == least:
                return

    def _cut_names(self, best: Fitted) -> Iterator[Fitted]:
        return self._cut_texts(best, named=True)

    def _empty_texts(self, best: Fitted) -> Iterator[Fitted]:
        """From the last, because the first items are the best."""
        over, saved = self._over(best), 0
        for text in reversed(self._outline.texts.values()):
            if text.named or text.item or text.tokens < _WORTH_EMPTYING:
                continue
            saved += min(text.tokens, text.room or text.tokens)
            text.room = 0
            if saved >= over:
                best = self._outline.put_together()
                yield best
                over, saved = self._over(best), 0
        yield self._outline.put_together()

    def _drop_items(self, best: Fitted, *, least: int = 1) -> Iterator[Fitted]:
        """From the end of the longest list; a first item stays as long as anything else can go."""
        while (longest := self._longest(least)) is not None:
            group, prices = longest
            over, saved = self._over(best), 0
            while group.keep > least and saved < over:
                group.keep -= 1
                saved += prices[group.keep]
            best = self._outline.put_together()
            yield best

    def _drop_all(self, best: Fitted) -> Iterator[Fitted]:
        return self._drop_items(best, least=0)

    def _longest(self, least: int) -> tuple[Group, list[int]] | None:
        """The list that costs the most, of those that can give something."""
        able = [(group, self._outline.prices(group)) for group in self._outline.standing(least)]
        return max(able, key=lambda each: sum(each[1]), default=None)


def _level(heights: Sequence[int], wanted: int) -> int:
    """The height at which all that stands higher, cut off there, is worth so much."""
    saved = 0
    ordered = [*sorted(heights, reverse=True), 0]
    for above, (height, below) in enumerate(pairwise(ordered), start=1):
        if saved + (height - below) * above >= wanted:
            return height - -(-(wanted - saved) // above)
        saved += (height - below) * above
    return 0
