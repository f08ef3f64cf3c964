"""Telling lines: the table proves itself, and what is no output is left alone."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextd.domain.cutting import pieces
from contextd.domain.telling_lines import telling
from contextd.domain.telling_shapes import SHAPES, Shape

ROOT = Path(__file__).parent.parent
HITS = [
    pytest.param(shape, hit, id=f"{shape.name}: {hit[:40]!r}") for shape in SHAPES for hit in shape.hits
]
MISSES = [
    pytest.param(miss, id=f"{shape.name}: {miss[:40]!r}") for shape in SHAPES for miss in shape.misses
]


def marked(text: str) -> list[str]:
    lines = pieces(text)
    return [line.rstrip("\n") for line, mark in zip(lines, telling(lines), strict=True) if mark]


# --- the table ---------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "hit"), HITS)
def test_each_shape_marks_its_hits(shape: Shape, hit: str) -> None:
    first = hit.partition("\n")[0]
    assert first in marked(hit)
    if shape.kind != "timed":
        assert re.match(shape.pattern, first), "another shape marks it"


@pytest.mark.parametrize("miss", MISSES)
def test_no_shape_marks_what_another_lists_as_a_miss(miss: str) -> None:
    assert not telling(pieces(miss))[0]


@pytest.mark.parametrize(("shape", "hit"), HITS)
def test_colours_and_a_time_before_it_do_not_hide_a_line(shape: Shape, hit: str) -> None:
    first, *rest = hit.split("\n")
    coloured = "\n".join([f"\x1b[1;31m{first}\x1b[0m", *rest])
    assert telling(pieces(coloured))[0]
    if shape.kind != "timed" and first[0] not in " \t":
        assert telling(pieces(f"2026-01-01T00:00:00.123456Z {hit}"))[0]


def test_shapes_have_names_hits_and_misses_of_their_own() -> None:
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)
    for shape in SHAPES:
        assert shape.hits, shape.name
        assert shape.misses, shape.name
        assert not set(shape.hits) & set(shape.misses), shape.name


# --- what is no output ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        'return errors.New("cannot open")',
        "except ValueError as error:",
        '    raise NotFound("x")',
        'log.error("failed")',
        "// error: this is prose",
        "An error: the file is missing.",
        "If the command fails, an error is shown and the exit code is 1.",
        "    assert error.code == 1",
        "- `ERROR`: something failed",
        "| `FAILED` | the run failed |",
        '    "error": "failed",',
        "class NotFoundError(Exception):",
        "        Error: err,",
        "} catch (IOException e) {",
        '\tt.Fatalf("got %d", n)',
        "warning: unused variable `x`",
        "x.c:3:5: warning: 'error' is unused",
        "2026-01-01T00:00:00Z WARN error: retrying",
        "2026-01-01T00:00:00Z INFO 0 errors, 0 failed",
        "DeprecationWarning: old",
        'panic!("no");',
        "    exit 1",
        "let error = 3;",
        "# Errors and exit codes",
    ],
)
def test_code_prose_and_warnings_are_not_telling(line: str) -> None:
    assert marked(line) == []


@pytest.mark.parametrize("pattern", ["src/**/*.py", "docs/**/*.md"])
def test_next_to_nothing_is_marked_in_our_own_source_and_documents(pattern: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob(pattern))]
    marks = [mark for text in texts for mark in telling(pieces(text))]
    assert len(marks) > 1000
    assert sum(marks) / len(marks) < 0.003


# --- lines in their place ----------------------------------------------------------------------


def test_a_traceback_is_marked_at_its_head_and_where_it_ends_whatever_the_exception_is_called() -> None:
    text = """\
starting
Traceback (most recent call last):
  File "a.py", line 3, in f
    g()

  File "a.py", line 9, in g
    run()
subprocess.TimeoutExpired: Command 'x' timed out after 3 seconds
done
"""
    assert marked(text) == [
        "Traceback (most recent call last):",
        "subprocess.TimeoutExpired: Command 'x' timed out after 3 seconds",
    ]


def test_a_traceback_is_followed_behind_the_head_of_a_container() -> None:
    text = """\
web-1  | Traceback (most recent call last):
web-1  |   File "a.py", line 3, in f
web-1  | queue.Empty
web-1  | done
"""
    assert marked(text) == ["web-1  | Traceback (most recent call last):", "web-1  | queue.Empty"]


def test_each_exception_of_a_group_is_marked() -> None:
    text = """\
  + Exception Group Traceback (most recent call last):
  |   File "a.py", line 3, in <module>
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "a.py", line 3, in f
    | zipfile.BadZipFile: no
    +---------------- 2 ----------------
    | ValueError: 1
    +------------------------------------
"""
    assert [line.strip(" |+") for line in marked(text)] == [
        "Exception Group Traceback (most recent call last):",
        "ExceptionGroup: two (2 sub-exceptions)",
        "Traceback (most recent call last):",
        "zipfile.BadZipFile: no",
        "ValueError: 1",
    ]


def test_a_place_goes_with_its_error_and_not_with_a_warning() -> None:
    text = """\
warning: unused variable: `x`
 --> src/main.rs:2:9
  |
error[E0308]: mismatched types
 --> src/main.rs:4:5
D103 Missing docstring in public function
 --> a.py:1:1
"""
    assert marked(text) == [
        "error[E0308]: mismatched types",
        " --> src/main.rs:4:5",
        "D103 Missing docstring in public function",
        " --> a.py:1:1",
    ]


def test_the_line_below_a_heading_goes_with_it() -> None:
    text = "* What went wrong:\n\nExecution failed for task ':compileJava'.\n> Compilation failed\n"
    assert marked(text) == ["* What went wrong:", "Execution failed for task ':compileJava'."]


def test_numbered_lines_count_only_beside_a_sum_of_failures() -> None:
    listed = "  1) Cart adds up\n  2) Cart is empty\n"
    assert marked(listed) == []
    assert marked(listed + "\n  2 failing\n") == ["  1) Cart adds up", "  2) Cart is empty", "  2 failing"]


def test_what_a_progress_bar_has_written_over_does_not_hide_a_line() -> None:
    assert telling(["10 %\r90 %\rerror: no space left\r\n"]) == [True]


def test_a_folded_line_is_judged_as_a_whole() -> None:
    start, end = "main.c:(.text+0x15): " + "x" * 300, ": undefined reference to `foo'\n"
    lines = pieces("before\n" + start + end + "after\n")
    assert telling(lines) == [False, True, True, False]
    assert not any(telling(pieces("x" * 250 + "\n" + "y" * 190 + " error: no\n")))


def test_lines_without_ends_are_judged_one_by_one() -> None:
    assert telling(["error: one", "two", "exit status 3", ""]) == [True, False, True, False]


@given(st.lists(st.text(st.characters() | st.sampled_from("\x1b[0m:|()Eerror 12\r\t")), max_size=8))
def test_any_text_is_judged_line_by_line(lines: list[str]) -> None:
    assert len(telling(lines)) == len(lines)
    assert telling([]) == []


@given(
    st.sampled_from(["a:", "error ", "= ", "a.py::", "'", '{"level":', "A::", "0:00 ", "x.", "- ", "_ "])
)
def test_a_long_line_of_one_unit_is_judged_at_once(unit: str) -> None:
    """Every repetition of the patterns is bounded: the test would not end if one were not."""
    assert len(telling(pieces(unit * 100_000))) == len(unit) * 500
