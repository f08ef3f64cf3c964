"""Streams: text in pieces is scrubbed as the whole text is."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextd.domain.errors import Internal
from contextd.domain.ports import ScrubStream, StreamScrubber
from contextd.scrubbing.rules import RULES, Rule
from contextd.scrubbing.scrubber import SecretScrubber

SCRUBBER = SecretScrubber(key=lambda: b"tests")
GITHUB = "ghp_" + "a1B2" * 9
KEY_BODY = "\n".join(["k7Qz2mXv9RtB4wLs" * 4] * 120)
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}\n-----END RSA PRIVATE KEY-----"
CODE = [
    "def connect(host: str, *, password: str | None = None) -> Session:",
    "    token = tokens[index2]  # see https://corp.dev/docs",
    "\x1b[32mPASSED\x1b[0m tests/test_auth.py::test_secret_key",
    "größer → 👩‍👩‍👧 than before\r",
    "",
    "    return Session(host, password=password, api_key=api_key or config.api_key2)",
]
HITS = [hit for rule in RULES for hit in rule.hits]

lines = st.one_of(
    st.sampled_from(CODE),
    st.sampled_from(HITS),
    st.integers(0, 400).map(lambda count: "nothing to see in this line\n" * count),
    st.integers(0, 300).map(lambda count: f"{'a word ' * count} {GITHUB[:20]}\x1b[1m{GITHUB[20:]}"),
    st.just(PEM),
)
texts = st.lists(lines, min_size=1, max_size=12).map("\n".join)
relaxed = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def streamed(text: str, size: int, keep_lines: bool = False) -> str:
    stream = SCRUBBER.stream(keep_lines=keep_lines)
    return "".join(
        [*(stream.feed(text[at : at + size]) for at in range(0, len(text), size)), stream.finish()]
    )


@relaxed
@given(texts, st.integers(1, 6_000))
def test_any_pieces_give_what_the_whole_gives(text: str, size: int) -> None:
    assert streamed(text, size) == SCRUBBER.scrub(text).text
    assert streamed(text, size, keep_lines=True) == SCRUBBER.scrub(text, keep_lines=True).text


@relaxed
@given(st.lists(st.one_of(texts, st.text()), max_size=8), st.data())
def test_pieces_of_any_text_make_no_difference(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts) * 3
    at = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
    stream = SCRUBBER.stream()
    pieces = [text[one:two] for one, two in zip([0, *at], [*at, len(text)], strict=True)]
    assert "".join([*map(stream.feed, pieces), stream.finish()]) == streamed(text, len(text) + 1)


@relaxed
@given(texts, st.integers(1, 5_000))
def test_bytes_may_part_a_character(text: str, size: int) -> None:
    scrubber: StreamScrubber = SCRUBBER
    stream: ScrubStream = scrubber.byte_stream()
    sent = text.encode() + b"\xff\xfe"
    out = [stream.feed(sent[at : at + size]) for at in range(0, len(sent), size)]
    whole = SCRUBBER.scrub(sent.decode("utf-8", "replace"))
    assert "".join([*out, stream.finish()]) == whole.text
    assert stream.findings == whole.findings


@pytest.mark.parametrize("before", range(15_900, 16_500, 37))
def test_a_secret_across_the_place_where_the_text_is_parted_is_found(before: int) -> None:
    text = "x" * before + f"\nexport GITHUB_TOKEN={GITHUB}\n" + "y\n" * 9_000
    stream = SCRUBBER.stream()
    out = "".join([*(stream.feed(char) for char in text), stream.finish()])
    assert out == SCRUBBER.scrub(text).text
    assert stream.findings == {"github-token": 1}


@pytest.mark.parametrize("before", range(3_000, 16_000, 1_300))
def test_a_private_key_longer_than_what_is_held_back_is_one_finding(before: int) -> None:
    text = "line\n" * (before // 5) + PEM + "\nend\n" * 3_000
    stream = SCRUBBER.stream()
    out = stream.feed(text[:before]) + stream.feed(text[before:]) + stream.finish()
    assert out == SCRUBBER.scrub(text).text
    assert stream.findings == {"private-key": 1}


def test_most_of_a_long_text_is_let_go_before_its_end() -> None:
    stream = SCRUBBER.stream()
    text = "nothing to see in this line\n" * 4_000
    assert len(stream.feed(text)) > len(text) - 20_000


def test_a_line_without_end_and_a_key_without_end_are_let_go_in_time() -> None:
    for text in ("a1B2" * 100_000, "-----BEGIN RSA PRIVATE KEY-----\n" + "a line of prose\n" * 20_000):
        stream = SCRUBBER.stream()
        assert len(stream.feed(text)) > len(text) - 80_000
        stream.finish()


def test_a_finished_stream_may_be_used_for_another_text() -> None:
    stream = SCRUBBER.stream()
    assert stream.feed("one ") + stream.finish() == "one "
    assert stream.feed("two") + stream.finish() == "two"


def broken(match: str, secret: str) -> bool:
    raise KeyError(secret)


def test_after_a_failure_a_stream_returns_nothing_more() -> None:
    rule = Rule("broken", ("emp-",), "EMP-[0-9]+", "", (), (), judge=broken)
    stream = SecretScrubber([rule]).stream()
    assert stream.feed("EMP-739184") == ""
    for _ in range(2):
        with pytest.raises(Internal):
            stream.finish()
    with pytest.raises(Internal):
        stream.feed("clean\n" * 10_000)
