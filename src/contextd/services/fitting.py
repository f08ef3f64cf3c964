"""An answer made to fit its budget: long texts are shortened first, items are dropped last.

Fields stay: a client that knows the answer's schema finds every one of them, only shorter.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from contextd.domain.answers import Answer, Count
from contextd.services.answer_outline import Fitted, Group, Handle, Outline, Text

_BESIDE_A_MARK: Final = 24
"""Tokens that a text keeps besides the mark, or it is emptied instead: a line or two."""
_FOR_ITEMS: Final = 0.6
"""Of the budget, when not even the bare items fit: the rest is for what the best of them say."""
_TRIES: Final = 6
_WASTED: Final = 0.04
"""Of the budget: less is not worth another try."""
_SHARES: Final = (0.97, 0.9, 0.7, 0.4)
"""Of what is left over, to be used: less after more was too much."""
_ONE_MORE: Final = 150
"""Tokens that a first item may cost beyond the budget: an empty list would say that nothing was found."""


def fitted(
    whole: Answer, budget: int, count: Count, handle: Handle, schema: Mapping[str, Any] | None = None
) -> Fitted:
    """The answer within the budget, or as near to it as its fields and a first item allow.

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
        for way in (self._shorten, self._drop_items, self._shorten_names, self._drop_firsts):
            for smaller in way(best):
                best = smaller
                if self._over(best) <= 0:
                    return self._grown(best)
        return best

    def _over(self, best: Fitted) -> int:
        return best.answer.tokens_used - self._budget

    # --- texts ------------------------------------------------------------------------

    def _shorten(self, best: Fitted, *, named: bool = False) -> Iterator[Fitted]:
        """As far as it takes: those of the first items the least.

        Each try asks for twice the excess of the one before: lines leave whole, and a token or two too
        many would else be asked for again and again without a line that is as short.
        """
        texts = self._outline.standing_texts(named=named)
        wanted = 0
        for step in range(_TRIES):
            wanted += self._over(best) << step
            length = self._length(texts, wanted)
            self._cut_to(texts, length)
            best = self._outline.put_together()
            yield best
            if length == 0:
                return

    def _shorten_names(self, best: Fitted) -> Iterator[Fitted]:
        return self._shorten(best, named=True)

    def _grown(self, best: Fitted) -> Fitted:
        """With longer texts, where items went or marks turned out cheaper than was thought."""
        texts = self._outline.standing_texts(named=False)
        whole = sum(text.tokens for text in texts)
        shown = sum(self._shown(text, text.room) for text in texts)
        for share in _SHARES:
            spare = -self._over(best)
            if spare < _WASTED * self._budget or shown == whole:
                break
            self._cut_to(texts, self._length(texts, int(whole - shown - share * spare)))
            longer = self._outline.put_together()
            if self._over(longer) <= 0:
                best, shown = longer, sum(self._shown(text, text.room) for text in texts)
        return best

    def _length(self, texts: Sequence[Text], wanted: int) -> int:
        """The greatest length of a first text at which cutting saves what is wanted; 0 if none does."""
        low, high = 0, 2 * max((text.tokens for text in texts), default=0)
        whole = sum(text.tokens for text in texts)
        while low < high:
            middle = (low + high + 1) // 2
            kept = sum(self._shown(text, self._room(text, middle)) for text in texts)
            low, high = (middle, high) if whole - kept >= wanted else (low, middle - 1)
        return low

    def _cut_to(self, texts: Sequence[Text], length: int) -> None:
        for text in texts:
            text.room = self._room(text, length)

    def _room(self, text: Text, length: int) -> int | None:
        """What is left of a text: all (None), so many tokens of it, or nothing."""
        cap = int(length * text.weight)
        if text.tokens <= cap or text.tokens <= self._least_worth:
            return None
        least = self._outline.mark_prices.first + _BESIDE_A_MARK
        if cap >= least:
            return cap
        if text.item or text.named:
            return least if text.tokens > least else None
        return 0

    def _shown(self, text: Text, room: int | None) -> int:
        return text.tokens if room is None else min(text.tokens, room or self._least_worth)

    @property
    def _least_worth(self) -> int:
        """What an emptied text costs: shorter ones stay."""
        return self._outline.emptied_price

    # --- items ------------------------------------------------------------------------

    def _drop_items(self, best: Fitted) -> Iterator[Fitted]:
        """From the end of the longest list; then the others may say more again."""
        emptied = sum(text.tokens for text in self._outline.texts.values() if text.room == 0)
        target = max(int(self._budget * _FOR_ITEMS), self._budget - emptied)
        while best.answer.tokens_used > target and (longest := self._longest(1)) is not None:
            self._shrink(*longest, best.answer.tokens_used - target, 1)
            best = self._outline.put_together()
        yield best

    def _drop_firsts(self, best: Fitted) -> Iterator[Fitted]:
        while self._over(best) > _ONE_MORE and (longest := self._longest(0)) is not None:
            self._shrink(*longest, self._over(best), 0)
            best = self._outline.put_together()
            yield best

    def _shrink(self, group: Group, prices: list[int], over: int, least: int) -> None:
        saved = 0
        while group.keep > least and saved < over:
            group.keep -= 1
            saved += prices[group.keep]

    def _longest(self, least: int) -> tuple[Group, list[int]] | None:
        """The list that costs the most, of those that can give something, and what each item costs."""
        able = [(group, self._outline.prices(group)) for group in self._outline.standing(least)]
        return max(able, key=lambda each: sum(each[1]), default=None)
