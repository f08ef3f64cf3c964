"""Log lines: they parse, they are scrubbed, they tell whose request it was, and they never raise."""

import contextvars
import io
import json
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextd.adapters.log_lines import (
    LONGEST_TEXT,
    QUIETER,
    ROUTED,
    configure_logging,
    request_id,
    set_request_id,
)

SECRET = "hunter2" * 4
LOG = logging.getLogger("contextd.test")

SURROGATES = st.characters(categories=["Cs"])
ANY_TEXT = st.text(st.characters() | SURROGATES | st.sampled_from("\x00\x1b\r\n\x85\u2028\u202e"))


def scrub(text: str) -> str:
    text.encode()  # as the real one: what is not well-formed is refused
    text = text.replace(SECRET, "[REDACTED]")
    return re.sub(r"(password)=\S+", r"\1=[REDACTED]", text)


def no_trace() -> str | None:
    return None


def fail(error: Exception) -> None:
    raise error


def parsed(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in (None, "uvicorn.access", *ROUTED, *QUIETER)]
    before = [(each, each.handlers[:], each.level, each.propagate) for each in loggers]
    yield
    for each, handlers, level, propagate in before:
        each.handlers[:] = handlers
        each.setLevel(level)
        each.propagate = propagate
    logging.captureWarnings(False)


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


Lines = Callable[[], list[dict[str, Any]]]


def json_lines(out: io.StringIO | None = None) -> Lines:
    """To be called in the test itself: pytest adds handlers of its own after the fixtures have run."""
    out = out or io.StringIO()
    configure_logging("debug", "json", scrub, no_trace, out)
    return lambda: parsed(out)


# --- the line ----------------------------------------------------------------------------


def test_a_line_tells_when_how_bad_who_and_what() -> None:
    lines = json_lines()
    LOG.warning("indexed %d files", 12, extra={"project": "web", "seconds": 0.5})
    [line] = lines()
    assert list(line) == ["time", "level", "logger", "message", "project", "seconds"]
    assert line["level"] == "WARNING"
    assert line["logger"] == "contextd.test"
    assert line["message"] == "indexed 12 files"
    assert (line["project"], line["seconds"]) == ("web", 0.5)
    assert line["time"].endswith("Z")
    assert datetime.fromisoformat(line["time"]).utcoffset() == timedelta(0)


def test_the_request_and_the_trace_are_on_every_line_of_a_request(out: io.StringIO) -> None:
    configure_logging("info", "json", scrub, lambda: "0af7651916cd43dd", out)
    token = set_request_id("req-1")
    LOG.info("inside")
    request_id.reset(token)
    LOG.info("outside")
    inside, outside = parsed(out)
    assert (inside["request_id"], inside["trace_id"]) == ("req-1", "0af7651916cd43dd")
    assert "request_id" not in outside


def test_a_request_id_stays_in_its_own_context() -> None:
    lines = json_lines()
    contextvars.copy_context().run(set_request_id, "elsewhere")
    LOG.info("here")
    assert "request_id" not in lines()[0]


def test_an_extra_cannot_take_the_name_of_a_field() -> None:
    lines = json_lines()
    LOG.info("real", extra={"level": "forged", "time": "forged", "tool": "status"})
    [line] = lines()
    assert (line["level"], line["message"], line["tool"]) == ("INFO", "real", "status")
    assert line["time"] != "forged"


def test_extras_of_any_shape_become_json() -> None:
    lines = json_lines()
    extras = {
        "nested": {"list": [1, None, ("a", True)]},
        "nan": float("nan"),
        "path": object,
        "big": 10**30,
    }
    LOG.info("shapes", extra=extras)
    [line] = lines()
    assert line["nested"] == {"list": [1, None, ["a", True]]}
    assert line["nan"] == "nan"
    assert line["path"] == "<class 'object'>"
    assert line["big"] == str(10**30)


def test_a_structure_that_holds_itself_ends() -> None:
    lines = json_lines()
    loop: dict[str, object] = {}
    loop["self"] = loop
    LOG.info("loop", extra={"loop": loop})
    assert lines()[0]["message"] == "loop"


def test_lines_below_the_level_are_not_written(out: io.StringIO) -> None:
    configure_logging("WARNING", "json", scrub, no_trace, out)
    LOG.info("quiet")
    assert out.getvalue() == ""


def test_a_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="LOUD"):
        configure_logging("loud", "json", scrub, no_trace, io.StringIO())


# --- exceptions --------------------------------------------------------------------------


def test_an_exception_is_its_type_and_a_list_of_lines() -> None:
    lines = json_lines()
    try:
        fail(LookupError("no such drawer"))
    except LookupError:
        LOG.exception("could not open")
    error = lines()[0]["error"]
    assert error["type"] == "LookupError"
    assert error["stack"][0] == "Traceback (most recent call last):"
    assert error["stack"][-1] == "LookupError: no such drawer"


def test_a_stack_without_an_exception_is_a_list_too() -> None:
    lines = json_lines()
    LOG.info("here", stack_info=True)
    assert "test_a_stack_without_an_exception" in "".join(lines()[0]["error"]["stack"])


def test_asking_for_an_exception_where_there_is_none_is_an_ordinary_line() -> None:
    lines = json_lines()
    LOG.info("calm", exc_info=True)
    assert "error" not in lines()[0]


# --- scrubbing ---------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["json", "text"])
def test_a_secret_is_redacted_wherever_it_stands(out: io.StringIO, format: str) -> None:
    configure_logging("info", "json" if format == "json" else "text", scrub, no_trace, out)
    token = set_request_id(SECRET)
    try:
        fail(ValueError(SECRET))
    except ValueError:
        LOG.exception(
            "key %s", SECRET, extra={"a": SECRET, "b": [{SECRET: SECRET}], SECRET: b"x" + SECRET.encode()}
        )
    request_id.reset(token)
    assert SECRET not in out.getvalue()
    assert out.getvalue().count("[REDACTED]") >= 6


def test_a_secret_that_only_its_name_gives_away_is_redacted() -> None:
    lines = json_lines()
    LOG.info("login", extra={"password": "correct horse", "deep": {"password": "x"}, "user": "ann"})
    [line] = lines()
    assert line["password"].startswith("[REDACTED]")
    assert line["deep"] == {"password": "[REDACTED]"}
    assert line["user"] == "ann"


@pytest.mark.parametrize("format", ["json", "text"])
def test_when_the_scrubber_fails_the_line_says_so_and_drops_the_text(out: io.StringIO, format: str) -> None:
    def broken(text: str) -> str:
        raise RuntimeError(text)

    configure_logging("info", "json" if format == "json" else "text", broken, no_trace, out)
    try:
        fail(ValueError(SECRET))
    except ValueError:
        LOG.exception(SECRET, extra={"key": SECRET})
    [line] = out.getvalue().splitlines()
    assert SECRET not in line
    assert "text dropped: RuntimeError" in line
    assert "ERROR" in line


def test_a_huge_text_is_cut_and_a_secret_on_the_cut_is_not_halved(out: io.StringIO) -> None:
    configure_logging("info", "json", scrub, no_trace, out)
    for before in range(LONGEST_TEXT * 2 - len(SECRET), LONGEST_TEXT * 2 + 1):
        LOG.info("%s", "." * before + SECRET + "." * 100_000)
    # Redaction shortens what comes first, and so moves the cut.
    LOG.info("%s", (SECRET + " ") * 10_000)
    assert SECRET[:4] not in out.getvalue()
    for line in parsed(out):
        assert len(line["message"]) < LONGEST_TEXT + 50
    assert "characters)" in out.getvalue()


# --- hostile records ---------------------------------------------------------------------


def test_any_text_makes_one_line_that_parses() -> None:
    out = io.StringIO()
    configure_logging("info", "json", scrub, no_trace, out)

    @given(ANY_TEXT, ANY_TEXT)
    def check(message: str, value: str) -> None:
        out.seek(0)
        out.truncate()
        LOG.info(message, extra={"value": value})
        [line] = out.getvalue().splitlines()
        fields = json.loads(line)
        if not any(0xD800 <= ord(character) <= 0xDFFF for character in message + value):
            assert (fields["message"], fields["value"]) == (message, value)

    check()


def test_a_lone_surrogate_costs_one_character_and_not_the_line() -> None:
    lines = json_lines()
    LOG.info("before \ud800 after", extra={"value": "\udfff"})
    [line] = lines()
    assert (line["message"], line["value"]) == ("before \ufffd after", "\ufffd")


def test_any_text_makes_one_visible_line_of_text() -> None:
    out = io.StringIO()
    configure_logging("info", "text", scrub, no_trace, out)

    @given(ANY_TEXT, ANY_TEXT)
    def check(message: str, value: str) -> None:
        out.seek(0)
        out.truncate()
        LOG.info(message, extra={"value": value})
        written = out.getvalue()
        assert len(written.splitlines()) == 1
        assert "\x1b" not in written
        assert "\u202e" not in written

    check()


def test_a_message_that_cannot_be_formatted_is_a_line_not_an_error() -> None:
    lines = json_lines()
    LOG.info("%d files", "many")
    LOG.info("still here")
    broken, after = lines()
    assert broken["message"] == "(text dropped: TypeError while it was made safe to write)"
    assert after["message"] == "still here"


def test_a_value_that_cannot_be_shown_is_a_line_not_an_error() -> None:
    lines = json_lines()

    class Hostile:
        def __str__(self) -> str:
            raise RuntimeError(SECRET)

    LOG.info("x", extra={"hostile": Hostile()})
    LOG.info("%s", Hostile())
    assert [line["message"][:13] for line in lines()] == ["(text dropped", "(text dropped"]


def test_a_stream_that_is_closed_is_no_error_and_tells_nothing(
    out: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    json_lines(out)
    out.close()
    LOG.info(SECRET)
    assert capsys.readouterr() == ("", "")


def test_a_stream_of_few_letters_still_takes_every_text() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    configure_logging("info", "text", scrub, no_trace, stream)
    LOG.info("naïve ☃")
    assert b"na\\xefve \\u2603" in raw.getvalue()


# --- text --------------------------------------------------------------------------------


def test_text_is_short_and_plain_off_a_terminal(out: io.StringIO) -> None:
    configure_logging("info", "text", scrub, no_trace, out)
    LOG.info("ready", extra={"port": 8080, "host": "127.0.0.1", "note": "two words"})
    time, rest = out.getvalue().split(" ", 1)
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}", time)
    assert rest == 'INFO     contextd.test: ready port=8080 host=127.0.0.1 note="two words"\n'


def test_text_is_coloured_on_a_terminal() -> None:
    terminal = Terminal()
    configure_logging("info", "text", scrub, no_trace, terminal)
    LOG.error("failed")
    assert "\x1b[31mERROR   \x1b[0m" in terminal.getvalue()


def test_text_shows_the_stack_below_the_line(out: io.StringIO) -> None:
    configure_logging("info", "text", scrub, no_trace, out)
    try:
        fail(LookupError("gone"))
    except LookupError:
        LOG.exception("failed", extra={"error_id": "NF_001"})
    first, *stack = out.getvalue().splitlines()
    assert first.endswith("failed error_id=NF_001")
    assert stack[-1] == "    LookupError: gone"


# --- the libraries -----------------------------------------------------------------------


def test_libraries_speak_through_the_same_handler() -> None:
    names = ["uvicorn.error", "mcp.server.lowlevel.server", "starlette", "httpx"]
    logging.getLogger("uvicorn").addHandler(logging.StreamHandler(io.StringIO()))
    lines = json_lines()
    for name in names:
        logging.getLogger(name).warning("from a library %s", SECRET)
    assert [(line["logger"], line["message"]) for line in lines()] == [
        (name, "from a library [REDACTED]") for name in names
    ]
    assert logging.getLogger("uvicorn").handlers == []


def test_uvicorns_access_log_is_off_and_its_coloured_copy_is_not_repeated() -> None:
    lines = json_lines()
    logging.getLogger("uvicorn.access").info("GET /")
    logging.getLogger("uvicorn.error").warning("started", extra={"color_message": "\x1b[1mstarted"})
    [line] = lines()
    assert "color_message" not in line


def test_a_warning_of_python_is_a_line() -> None:
    lines = json_lines()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn(f"old {SECRET}", stacklevel=1)
        logging.captureWarnings(False)
    assert "old [REDACTED]" in lines()[0]["message"]


def test_configuring_again_replaces_the_handler(out: io.StringIO) -> None:
    for _ in range(2):
        configure_logging("info", "json", scrub, no_trace, out)
    LOG.info("once")
    assert len(out.getvalue().splitlines()) == 1
