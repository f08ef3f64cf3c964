"""Answers made to fit a budget: nothing is lost, fields stay, and the weight is what it says."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextd.adapters.tokens import O200kCounter
from contextd.domain.answers import weighed
from contextd.domain.cutting import pieces
from contextd.services.answer_outline import EMPTIED, Fitted, Part
from contextd.services.fitting import fitted

REF = "ref-0123456789ab-abcdefghjk"
COUNT = O200kCounter().count
SCHEMA: dict[str, Any] = {
    "$defs": {
        "Item": {
            "properties": {
                "id": {"type": "string"},
                "title": {"type": "string"},
                "score": {"type": "number"},
                "content": {"type": "string"},
                "context": {"type": "object"},
            }
        }
    },
    "properties": {
        "results": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        "total": {"type": "integer"},
        "state": {"anyOf": [{"type": "object"}, {"type": "null"}]},
    },
}

words = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=300)
lines = st.lists(
    st.sampled_from(["def area(self):", "    return 1", "", "Error: it broke", "ok", "x" * 450, "é" * 90]),
    max_size=120,
).map("\n".join)
texts = st.one_of(words, lines)
items = st.fixed_dictionaries(
    {
        "id": st.uuids().map(str),
        "title": st.text("abc def", max_size=60),
        "score": st.floats(0, 1),
        "content": texts,
        "context": st.dictionaries(st.text("abcdef", min_size=1, max_size=8), texts, max_size=4),
    }
)
answers = st.fixed_dictionaries(
    {
        "results": st.lists(items, max_size=8),
        "total": st.integers(0, 500),
        "state": st.one_of(
            st.none(), st.dictionaries(st.text("xyz", min_size=1, max_size=5), texts, max_size=6)
        ),
    }
)


def handle(parts: Sequence[Part]) -> str:
    return REF


def fit(data: dict[str, Any], budget: int, warning: str = "") -> Fitted:
    return fitted(weighed(data, COUNT, warning=warning), budget, COUNT, handle, SCHEMA)


def restored(done: Fitted) -> dict[str, Any]:
    """The whole answer again, from what was answered and what is held under the ref."""
    by_place = {part.place: (number, part.text) for number, part in enumerate(done.parts, start=1)}
    many = len(done.parts) > 1

    def whole(value: Any, place: str) -> Any:
        if isinstance(value, str):
            return text_again(value, place)
        if isinstance(value, list):
            inner = [whole(item, f"{place}[{at}]") for at, item in enumerate(value)]
            return inner + dropped(rf"{re.escape(place)}\[\d+:\d+\]")
        if isinstance(value, dict):
            inner_fields = {
                name: whole(item, f"{place}.{name}" if place else name) for name, item in value.items()
            }
            for field in dropped(rf"{re.escape(place)}\{{\d+ fields\}}"):
                inner_fields |= field
            return inner_fields
        return value

    def dropped(place: str) -> list[Any]:
        found = [text for name, (_, text) in by_place.items() if re.fullmatch(place, name)]
        return [json.loads(line) for text in found for line in text.split("\n")[:-1]]

    def text_again(value: str, place: str) -> str:
        if place not in by_place:
            return value
        number, original = by_place[place]
        if value == EMPTIED:
            return original
        held = pieces(original)
        ref = f"{REF}.{number}" if many else REF
        mark = re.compile(r"\[… lines? (\d+)(?:-(\d+))? left out[^\n]*? …\]\n")
        assert f"ref_get {ref} …]" in value
        return mark.sub(lambda m: "".join(held[int(m[1]) - 1 : int(m[2] or m[1])]), value)

    again: dict[str, Any] = whole(done.answer.data, "")
    return again


@settings(max_examples=300, deadline=None)
@given(answers, st.integers(100, 3_000))
def test_what_stays_and_what_is_held_are_together_the_whole_answer(
    data: dict[str, Any], budget: int
) -> None:
    assert restored(fit(data, budget)) == data


@settings(max_examples=200, deadline=None)
@given(answers, st.integers(100, 3_000))
def test_an_answer_weighs_what_it_says_and_fits_its_budget(data: dict[str, Any], budget: int) -> None:
    answer = fit(data, budget).answer
    assert COUNT(answer.text) == answer.tokens_used
    assert json.loads(answer.text) == {**answer.data, **answer.envelope()}
    skeleton = {"results": [], "total": data["total"], "state": None if data["state"] is None else {}}
    least = weighed(skeleton, COUNT, (REF,), truncated=True).tokens_used
    of_a_first_item = 150 if len(answer.data["results"]) == 1 or answer.data["state"] else 0
    assert answer.tokens_used <= max(budget + of_a_first_item, least)


@settings(max_examples=100, deadline=None)
@given(answers, st.integers(100, 3_000))
def test_the_same_answer_is_cut_the_same_way_each_time(data: dict[str, Any], budget: int) -> None:
    assert fit(data, budget) == fit(json.loads(json.dumps(data)), budget)


@settings(max_examples=100, deadline=None)
@given(answers, st.integers(100, 3_000))
def test_no_field_is_ever_removed(data: dict[str, Any], budget: int) -> None:
    answer = fit(data, budget).answer
    assert set(answer.data) == set(data)
    for item in answer.data["results"]:
        assert set(item) == {"id", "title", "score", "content", "context"}


def test_texts_go_before_items_and_names_go_last() -> None:
    data = {
        "results": [
            {
                "id": f"id-{at}",
                "title": f"title {at}",
                "score": 0.5,
                "content": "word " * 400,
                "context": {},
            }
            for at in range(8)
        ],
        "total": 40,
        "state": None,
    }
    shorter = fit(data, 1_000).answer.data
    assert [item["id"] for item in shorter["results"]] == [f"id-{at}" for at in range(8)]
    lengths = [len(item["content"]) for item in shorter["results"]]
    assert lengths == sorted(lengths, reverse=True)
    assert "ref_get" in shorter["results"][0]["content"]
    assert shorter["results"][-1]["content"] == EMPTIED
    fewer = fit(data, 150).answer.data
    assert 0 < len(fewer["results"]) < 8
    assert fewer["results"][0] | {"content": ""} == data["results"][0] | {"content": ""}  # type: ignore[index]  # it is a list
    assert fewer["total"] == 40


@pytest.mark.parametrize(
    "state",
    [
        {f"key{number}": f"value number {number} is here" for number in range(1_000)},
        {f"key{number}": [f"v{number}", number] for number in range(1_000)},
        {"list": [f"string number {number}" for number in range(2_000)]},
        {
            f"key{number}": "several words in a text, more than two dozen tokens of them " * 4
            for number in range(400)
        },
        {"line": "a" * 100_000},
        {"lines": "some words here\n" * 5_000},
    ],
    ids=["short texts", "short lists", "a long list", "long texts", "one line", "many lines"],
)
def test_what_fits_is_used(state: dict[str, Any]) -> None:
    data = {"results": [], "total": 1, "state": state}
    done = fit(data, 2_000)
    assert 1_800 <= done.answer.tokens_used <= 2_000
    assert restored(done) == data


@pytest.mark.parametrize("budget", range(1_980, 2_021))
def test_a_text_of_even_lines_is_within_any_budget(budget: int) -> None:
    """Its lines are ten tokens each: an excess of two is paid with a whole one."""
    long = "\n".join(f"line {number} of a long transcript" for number in range(2_000))
    done = fit({"content": long, "id": "cp-e828acfc792e-1m7q8f0jbpw2h0bxb"}, budget)
    assert budget * 0.95 < done.answer.tokens_used <= budget


def test_an_answer_that_fits_is_left_alone() -> None:
    data = {"results": [], "total": 0, "state": {"a": "b"}}
    done = fit(data, 100)
    assert done.parts == ()
    assert done.answer.data == data
    assert not done.answer.truncated
    assert done.answer.tokens_cut == 0
    assert list(done.answer.envelope()) == ["tokens_used"]


def test_the_error_in_the_middle_of_a_long_output_is_still_there() -> None:
    noise = [f"compiling unit {number} of many, nothing to see here" for number in range(900)]
    noise[450] = "src/main.c:12:5: error: expected ';' before 'return'"
    noise[700] = "--- FAIL: TestTotals (0.01s)"
    done = fit({"results": [], "total": 0, "state": {"stdout": "\n".join(noise)}}, 500)
    shown = done.answer.data["state"]["stdout"]
    assert noise[450] in shown
    assert noise[700] in shown
    assert shown.startswith(noise[0])
    assert shown.endswith(noise[-1])
    assert done.answer.tokens_used <= 500


def test_a_warning_is_a_part_of_what_is_weighed() -> None:
    data = {"results": [], "total": 0, "state": {"a": "word " * 300}}
    answer = fit(data, 200, warning="return soon").answer
    assert answer.envelope()["warning"] == "return soon"
    assert COUNT(answer.text) == answer.tokens_used <= 200


@pytest.mark.parametrize("tokens", [990, 995, 996, 997, 998, 999, 1_000, 1_001, 1_002, 1_005])
def test_the_weight_is_exact_where_its_own_number_grows_a_digit(tokens: int) -> None:
    answer = weighed({"text": " word" * (tokens - 12)}, COUNT)
    assert COUNT(answer.text) == answer.tokens_used == json.loads(answer.text)["tokens_used"]
