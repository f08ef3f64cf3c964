"""Names that are nearly right: what weights for them are fitted on."""

import random

from hypothesis import example, given
from hypothesis import strategies as st

from contextd.domain.words import split_words
from misremembered import misremembered

NAMES = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,30}", fullmatch=True)


@given(NAMES, st.integers(0, 1_000))
@example("URLParamFromCtx", 1)
@example("super_len", 1)
@example("A", 1)
@example("a1", 1)
def test_it_is_another_name_of_the_same_kind_of_writing(name: str, seed: int) -> None:
    nearly = misremembered(name, random.Random(seed))
    if nearly is None:
        assert len(split_words(name)) < 2
        return
    assert split_words(nearly) != split_words(name)
    assert nearly.isidentifier()
    assert ("_" in name.strip("_")) or "_" not in nearly


@given(st.integers(0, 1_000))
def test_most_of_the_words_stay(seed: int) -> None:
    nearly = misremembered("AbortWithStatusCode", random.Random(seed))
    assert nearly is not None
    assert len({"abort", "with", "status", "code"} & set(split_words(nearly))) >= 3
