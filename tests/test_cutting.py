"""Cutting: what stays and what goes when a text is longer than its room."""

import time
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextd.domain.cutting import WIDEST, Gap, Prices, gaps, pieces, rendered
from contextd.domain.telling_lines import telling

PRICES = Prices(first=20, next=8)
ERROR = "main.c:3:5: error: expected ';' before 'return'\n"

PLAIN = st.sampled_from(
    ["\n", "compiling a module\n", "    x = 1\n", "ok\n", "a longer line, of several words\n"]
)
TELLING = st.sampled_from(
    [ERROR, "ValueError: bad row 7\n", "exit status 1\n", "--- FAIL: TestX (0.00s)\n"]
)
LINES = st.lists(PLAIN | PLAIN | PLAIN | TELLING, min_size=1, max_size=40)
COSTS = st.integers(0, 12) | st.sampled_from([0, 1, 90])
ANY_PRICES = st.builds(Prices, first=st.integers(0, 40), next=st.integers(0, 40))
USUAL_PRICES = ANY_PRICES.filter(lambda prices: prices.next <= prices.first)


@st.composite
def costed(draw: st.DrawFn) -> tuple[list[str], list[int], int]:
    """Lines, what each costs, and a room that is often, but not always, too small."""
    lines = draw(LINES)
    costs = draw(st.lists(COSTS, min_size=len(lines), max_size=len(lines)))
    return lines, costs, draw(st.integers(0, sum(costs) + 5))


def left_out(found: Sequence[Gap]) -> list[int]:
    return [at for gap in found for at in range(gap.first - 1, gap.last)]


def cost_of(costs: Sequence[int], found: Sequence[Gap], prices: Prices) -> int:
    gone = set(left_out(found))
    markers = prices.first + prices.next * (len(found) - 1) if found else 0
    return sum(cost for at, cost in enumerate(costs) if at not in gone) + markers


def cost_of_keeping(kept: Sequence[int], costs: Sequence[int], prices: Prices) -> int:
    """The least that these lines cost together: what is between them stays where a marker is dearer."""
    borders = [-1, *sorted(set(kept)), len(costs)]
    between = (sum(costs[one + 1 : other]) for one, other in pairwise(borders))
    least = sum(min(cost, prices.next) for cost in between)
    return sum(costs[at] for at in set(kept)) + least + prices.first - prices.next


def plain(count: int) -> list[str]:
    return [f"compiled module {number}\n" for number in range(count)]


# --- pieces ------------------------------------------------------------------------------


@given(st.text(st.characters() | st.sampled_from("\n\r\x85\u2028 a")) | st.text("ab\n", min_size=WIDEST))
@example("")
@example("\n")
@example("a" * WIDEST + "\n")
@example("a" * (WIDEST + 1) + "\n\n" + "b" * 3 * WIDEST)
def test_joined_the_pieces_are_the_text_and_none_is_too_wide(text: str) -> None:
    cut = pieces(text)
    assert "".join(cut) == text
    assert all(0 < len(piece.removesuffix("\n")) <= WIDEST or piece == "\n" for piece in cut)
    assert all("\n" not in piece[:-1] for piece in cut)


def test_an_empty_text_has_no_pieces() -> None:
    assert pieces("") == []


def test_only_a_line_feed_ends_a_line() -> None:
    assert pieces("a\r\nb\x0cc\u2028d\re\n") == ["a\r\n", "b\x0cc\u2028d\re\n"]


def test_a_wide_line_is_folded_and_its_end_stays_with_the_last_piece() -> None:
    assert [len(piece) for piece in pieces("a" * 450 + "\nb")] == [200, 200, 51, 1]
    assert [len(piece) for piece in pieces("a" * 400 + "\n")] == [200, 201]


# --- what always holds --------------------------------------------------------------------


@given(costed(), ANY_PRICES)
def test_what_stays_with_its_markers_fits_the_room(
    text: tuple[list[str], list[int], int], prices: Prices
) -> None:
    lines, costs, room = text
    found = gaps(lines, costs, room, prices)
    assert cost_of(costs, found, prices) <= max(room, prices.first)
    if sum(costs) <= room:
        assert found == ()


@given(costed(), ANY_PRICES)
def test_gaps_are_in_order_apart_and_within_the_text(
    text: tuple[list[str], list[int], int], prices: Prices
) -> None:
    lines, costs, room = text
    found = gaps(lines, costs, room, prices)
    assert all(1 <= gap.first <= gap.last <= len(lines) for gap in found)
    assert all(one.last + 1 < other.first for one, other in pairwise(found))
    assert gaps(lines, costs, room, prices) == found


@given(costed(), ANY_PRICES)
def test_a_gap_costs_more_to_keep_than_the_marker_it_saves(
    text: tuple[list[str], list[int], int], prices: Prices
) -> None:
    lines, costs, room = text
    found = gaps(lines, costs, room, prices)
    saved = prices.next if len(found) > 1 else prices.first
    assert all(sum(costs[gap.first - 1 : gap.last]) > saved for gap in found)


@given(costed(), ANY_PRICES)
def test_a_gap_tells_how_many_telling_lines_it_hides(
    text: tuple[list[str], list[int], int], prices: Prices
) -> None:
    lines, costs, room = text
    marks = telling(lines)
    for gap in gaps(lines, costs, room, prices):
        assert gap.telling == sum(marks[gap.first - 1 : gap.last])


@given(costed(), ANY_PRICES)
def test_with_the_gaps_own_lines_for_markers_the_text_is_whole_again(
    text: tuple[list[str], list[int], int], prices: Prices
) -> None:
    lines, costs, room = text
    found = gaps(lines, costs, room, prices)
    whole = rendered(lines, found, lambda gap, _: "".join(lines[gap.first - 1 : gap.last]))
    assert whole == "".join(lines)


@given(costed(), USUAL_PRICES)
def test_the_first_and_the_last_line_stay_whenever_they_and_a_marker_fit(
    text: tuple[list[str], list[int], int], prices: Prices
) -> None:
    lines, costs, room = text
    gone = left_out(gaps(lines, costs, room, prices))
    last = len(lines) - 1
    if prices.first + sum(costs[at] for at in {0, last}) <= room:
        assert not {0, last} & set(gone)
    precious = last if any(telling(lines)) else 0
    if prices.first + costs[precious] <= room:
        assert precious not in gone


@given(costed(), USUAL_PRICES)
def test_every_telling_line_stays_whenever_all_fit_beside_the_first_and_the_last(
    text: tuple[list[str], list[int], int], prices: Prices
) -> None:
    lines, costs, room = text
    marked = [at for at, mark in enumerate(telling(lines)) if mark]
    if cost_of_keeping([0, *marked, len(lines) - 1], costs, prices) <= room:
        assert not set(marked) & set(left_out(gaps(lines, costs, room, prices)))


@given(st.integers(30, 290), st.sets(st.integers(0, 99), max_size=3))
def test_less_than_a_line_of_room_is_wasted(room: int, errors: set[int]) -> None:
    lines = [ERROR if at in errors else line for at, line in enumerate(plain(100))]
    found = gaps(lines, [3] * 100, room, PRICES)
    if not any(gap.telling for gap in found):
        assert room - cost_of([3] * 100, found, PRICES) < 3


# --- examples ---------------------------------------------------------------------------


def test_what_fits_is_not_cut() -> None:
    assert gaps(plain(10), [5] * 10, 50, PRICES) == ()
    assert gaps([], [], 0, PRICES) == ()


def test_of_the_room_the_head_has_eight_tenths_and_the_tail_two() -> None:
    assert gaps(plain(1000), [1] * 1000, 120, PRICES) == (Gap(81, 980),)


def test_of_the_room_of_an_output_with_an_error_the_tail_has_four_tenths() -> None:
    output = [*plain(999), "make: *** [Makefile:4: all] Error 2\n"]
    assert gaps(output, [1] * 1000, 120, PRICES) == (Gap(61, 960),)


def test_an_error_in_the_middle_is_an_island_between_two_gaps() -> None:
    lines = plain(1000)
    lines[499] = ERROR
    found = gaps(lines, [1] * 1000, 129, PRICES)
    assert [(gap.first, gap.last) for gap in found] == [(61, 499), (501, 960)]


def test_telling_lines_in_a_row_are_one_island_and_so_are_close_ones() -> None:
    lines = plain(1000)
    lines[400] = lines[401] = lines[409] = ERROR
    found = gaps(lines, [1] * 1000, 200, PRICES)
    assert len(found) == 2
    assert not set(range(400, 410)) & set(left_out(found))


def test_what_costs_as_much_as_its_marker_is_kept() -> None:
    lines = plain(1000)
    lines[400] = lines[409] = lines[600] = lines[610] = ERROR
    found = gaps(lines, [1] * 1000, 60, PRICES)
    assert [(gap.first, gap.last) for gap in found][1:-1] == [(411, 600), (602, 610)]


def test_room_that_one_end_cannot_use_goes_to_the_other() -> None:
    costs = [1] * 100 + [90] * 99 + [1]
    assert gaps(plain(200), costs, 20 + 62, PRICES) == (Gap(62, 199),)
    assert gaps(plain(200), costs[::-1], 20 + 62, PRICES) == (Gap(2, 139),)


def test_the_head_reaches_an_island_when_its_share_pays_for_the_gap_less_the_marker() -> None:
    lines = plain(100)
    lines[30] = ERROR
    assert gaps(lines, [1] * 100, 66, PRICES) == (Gap(32, 85),)
    assert len(gaps(lines, [1] * 100, 65, PRICES)) == 2


def test_when_not_all_telling_lines_fit_one_of_each_kind_goes_before_a_second() -> None:
    lines = plain(1000)
    for at in range(100, 200, 10):
        lines[at] = f"src/mod{at}.c:{at}:5: error: unknown type name 'type{at}'\n"
    lines[700] = "exit status 2\n"
    lines[800] = "Segmentation fault (core dumped)\n"
    found = gaps(lines, [5] * 1000, 20 + 10 + 3 * 13, PRICES)
    assert not {0, 100, 700, 800, 999} & set(left_out(found))
    assert sum(gap.telling for gap in found) == 9


def test_the_first_line_is_the_most_precious_and_of_an_error_the_last() -> None:
    costs = [10] * 50
    assert gaps(plain(50), costs, 30, PRICES) == (Gap(2, 50),)
    output = [*plain(49), "make: *** [Makefile:4: all] Error 2\n"]
    assert gaps(output, costs, 30, PRICES) == (Gap(1, 49),)
    assert gaps(plain(50), costs, 40, PRICES) == (Gap(2, 49),)


def test_an_error_stays_where_the_first_and_the_last_line_are_too_long() -> None:
    lines = plain(50)
    lines[20] = ERROR
    costs = [500, *[10] * 48, 500]
    assert [(gap.first, gap.last) for gap in gaps(lines, costs, 60, PRICES)] == [(1, 20), (22, 50)]


@pytest.mark.parametrize("room", [-5, 0, 19, 25])
def test_where_no_line_fits_beside_a_marker_one_gap_covers_everything(room: int) -> None:
    lines = plain(50)
    lines[20] = ERROR
    assert gaps(lines, [10] * 50, room, PRICES) == (Gap(1, 50, telling=1),)


def test_a_text_that_costs_no_more_than_its_marker_is_kept() -> None:
    assert gaps(plain(3), [5] * 3, 10, PRICES) == ()


def test_of_a_wide_telling_line_at_least_the_first_piece_stays() -> None:
    wide = "ValueError: bad row " + "x" * 5000 + "\n"
    lines = pieces("".join([*plain(200), wide, *plain(200)]))
    assert lines[200].startswith("ValueError")
    found = gaps(lines, [20] * len(lines), 400, PRICES)
    assert 200 not in left_out(found)
    assert 201 in left_out(found)


def test_markers_are_put_in_as_they_are_and_the_first_is_told() -> None:
    lines = ["a\n", "b\n", "c\n", "d\n", "e\n"]
    text = rendered(lines, [Gap(2, 2), Gap(4, 4)], lambda gap, first: f"<{gap.first} {first}>")
    assert text == "a\n<2 True>c\n<4 False>e\n"
    assert rendered(lines, [], lambda *_: "") == "a\nb\nc\nd\ne\n"


@pytest.mark.parametrize("every", [1, 2, 1000])
def test_the_time_grows_no_faster_than_the_text(every: int) -> None:
    """A quadratic step would take minutes here; the bound is wide because the machine may be busy."""
    lines = plain(100_000)
    for at in range(0, len(lines), every):
        lines[at] = f"2026-01-01T00:00:00Z ERROR [worker-{at % 9}] request {at} failed\n"
    started = time.process_time()
    found = gaps(lines, [10] * len(lines), 300_000, PRICES)
    assert time.process_time() - started < 10
    assert cost_of([10] * len(lines), found, PRICES) <= 300_000
