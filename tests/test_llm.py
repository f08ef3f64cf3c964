"""The language model's adapter: one question, one try, and a cap that no day goes beyond."""

import json
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from contextd.adapters.circuit_breaker import CircuitBreaker
from contextd.adapters.llm import MAX_ANSWER_BYTES, MAX_ANSWER_TOKENS, ChatModel
from contextd.adapters.token_ledger import TokenLedger
from contextd.domain.errors import LanguageModelUnavailable, Misconfigured
from contextd.settings import Settings, load_settings
from llm_stub import Reply, always, said, serving


@dataclass
class Clock:
    at: datetime = field(default_factory=lambda: datetime(2026, 3, 1, 23, 0, tzinfo=UTC))

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return 0.0


class Words:
    """Counts words, so that figures are plain."""

    def count(self, text: str) -> int:
        return len(text.split())


def a_ledger(folder: Path, cap: int = 100_000, clock: Clock | None = None) -> TokenLedger:
    return TokenLedger(folder / "llm-tokens.json", cap, clock or Clock())


@asynccontextmanager
async def asking(url: str, ledger: TokenLedger, **options: Any) -> AsyncIterator[ChatModel]:
    model = ChatModel(url, "some-model", ledger, Words(), **{"timeout_s": 5.0, **options})
    try:
        yield model
    finally:
        await model.close()


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


# --- a question and its answer --------------------------------------------------------


@pytest.mark.anyio
async def test_a_question_is_asked_as_a_chat_and_its_text_comes_back(tmp_path: Path) -> None:
    with serving(always(said("hello", tokens=40))) as stub:
        async with asking(stub.url, a_ledger(tmp_path), api_key="k-1") as model:
            assert model.name == "some-model"
            assert await model.complete("be brief", "who is there") == "hello"
    assert stub.keys == ["Bearer k-1"]
    (question,) = stub.questions
    assert question == {
        "model": "some-model",
        "max_tokens": MAX_ANSWER_TOKENS,
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "who is there"},
        ],
    }


@pytest.mark.anyio
async def test_one_client_serves_many_questions_and_a_full_address_is_kept(tmp_path: Path) -> None:
    with serving(always(said("yes"))) as stub:
        async with asking(f"{stub.url}/chat/completions", a_ledger(tmp_path)) as model:
            assert [await model.complete("", "a"), await model.complete("", "b")] == ["yes", "yes"]
    assert len(stub.questions) == 2
    assert stub.keys == [None, None]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(b"not json"), "JSON"),
        (Reply(b"[" * 100_000), "JSON"),
        (Reply(b"{}"), "chat completion"),
        (Reply(b"[1]"), "chat completion"),
        (Reply(b'{"choices": []}'), "chat completion"),
        (Reply(b'{"choices": [{"message": {"content": null}}]}'), "with text"),
        (Reply(b" " * (MAX_ANSWER_BYTES + 1)), "too large"),
        (Reply(b"x", headers={"Content-Encoding": "gzip"}), "compressed"),
        (Reply(b"no", status=500), "status 500"),
        (Reply(b"no", status=429), "status 429"),
        (Reply(b"no", status=401), "CONTEXTD_LLM_API_KEY"),
        (Reply(b"", status=302, headers={"Location": "http://127.0.0.1:9/"}), "status 302"),
    ],
)
async def test_what_is_no_answer_is_told_and_never_returned(
    tmp_path: Path, reply: Reply, reason: str
) -> None:
    with serving(always(reply)) as stub:
        async with asking(stub.url, a_ledger(tmp_path)) as model:
            with pytest.raises(LanguageModelUnavailable, match=reason):
                await model.complete("", "x")


@pytest.mark.anyio
async def test_a_slow_model_is_given_up_and_its_tokens_stay_counted(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    with serving(always(None)) as stub:
        async with asking(stub.url, ledger, timeout_s=0.2) as model:
            with pytest.raises(LanguageModelUnavailable, match="too long"):
                await model.complete("one two", " three")
    assert ledger.spent == 3 + MAX_ANSWER_TOKENS


@pytest.mark.anyio
async def test_a_model_that_is_down_costs_nothing(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    async with asking(f"http://127.0.0.1:{free_port()}/v1", ledger) as model:
        with pytest.raises(LanguageModelUnavailable, match="cannot be reached"):
            await model.complete("", "x")
    assert ledger.spent == 0


@pytest.mark.anyio
async def test_a_server_that_hangs_up_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            connection, _ = listener.accept()
            connection.recv(65_536)
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        async with asking(f"http://127.0.0.1:{listener.getsockname()[1]}", a_ledger(tmp_path)) as model:
            with pytest.raises(LanguageModelUnavailable, match="broke off"):
                await model.complete("", "x")
        thread.join(5)


@pytest.mark.anyio
async def test_what_keeps_failing_is_left_alone(tmp_path: Path) -> None:
    now = [0.0]
    breaker = CircuitBreaker(threshold=2, cooldown_s=30, clock=lambda: now[0])
    with serving(always(Reply(b"no", status=503))) as stub:
        async with asking(stub.url, a_ledger(tmp_path), breaker=breaker) as model:
            for _ in range(4):
                with pytest.raises(LanguageModelUnavailable):
                    await model.complete("", "x")
            assert len(stub.questions) == 2
            now[0], stub.answer = 31.0, always(said("back"))
            assert await model.complete("", "x") == "back"


@pytest.mark.anyio
async def test_a_refusal_does_not_count_as_illness(tmp_path: Path) -> None:
    breaker = CircuitBreaker(threshold=1)
    ledger = a_ledger(tmp_path)
    with serving(always(Reply(b"no", status=404))) as stub:
        async with asking(stub.url, ledger, breaker=breaker) as model:
            with pytest.raises(LanguageModelUnavailable, match="CONTEXTD_LLM_MODEL"):
                await model.complete("", "x")
    assert not breaker.is_open
    assert ledger.spent == 0


@pytest.mark.anyio
async def test_a_closed_model_is_unavailable(tmp_path: Path) -> None:
    async with asking("http://127.0.0.1:9", a_ledger(tmp_path)) as model:
        await model.close()
        with pytest.raises(LanguageModelUnavailable, match="closed"):
            await model.complete("", "x")


@pytest.mark.parametrize(
    "url", ["", "localhost:1", "ftp://x", "http://", "http://[::1", "http://h:0", "http://h/\n"]
)
def test_an_address_that_is_none_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    with pytest.raises(Misconfigured, match="CONTEXTD_LLM_BASE_URL"):
        ChatModel(url, "m", a_ledger(tmp_path), Words())


def test_a_key_that_no_header_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="CONTEXTD_LLM_API_KEY"):
        ChatModel("http://h", "m", a_ledger(tmp_path), Words(), "k\n")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CONTEXTD_LLM_DAILY_TOKENS", "-1"),
        ("CONTEXTD_LLM_DAILY_TOKENS", "many"),
        ("CONTEXTD_LLM_TIMEOUT_S", "0"),
        ("CONTEXTD_LLM_TIMEOUT_S", "60"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(Misconfigured, match=name):
        load_settings({name: value, "CONTEXTD_CONFIG": "/nonexistent"})


def test_the_key_is_never_shown_and_contextd_does_not_ask_itself() -> None:
    environ = {"CONTEXTD_LLM_API_KEY": "hunter2-hunter2", "CONTEXTD_CONFIG": "/nonexistent"}
    assert "hunter2" not in str(load_settings(environ).sources)
    with pytest.raises(Misconfigured, match="contextd itself"):
        Settings(llm_base_url="http://localhost:8080/v1").check_serving(has_tokens=False)


# --- what it costs --------------------------------------------------------------------


@pytest.mark.anyio
async def test_tokens_are_reserved_before_and_corrected_after(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    spent_while_asking: list[int] = []

    def answer(question: dict[str, Any]) -> Reply:
        spent_while_asking.append(ledger.spent)
        return said("hi", tokens=77)

    with serving(answer) as stub:
        async with asking(stub.url, ledger) as model:
            await model.complete("one two", " three")
    assert spent_while_asking == [3 + MAX_ANSWER_TOKENS]
    assert ledger.spent == 77


@pytest.mark.anyio
@pytest.mark.parametrize("usage", [None, -5, 0, 10**9])
async def test_a_bill_that_cannot_be_leaves_the_reservation(tmp_path: Path, usage: int | None) -> None:
    ledger = a_ledger(tmp_path)
    with serving(always(said("hi", tokens=usage))) as stub:
        async with asking(stub.url, ledger) as model:
            await model.complete("", "x")
    assert ledger.spent == 1 + MAX_ANSWER_TOKENS


@pytest.mark.anyio
async def test_the_cap_stops_the_question_before_it_is_sent(tmp_path: Path) -> None:
    with serving(always(said("hi", tokens=600))) as stub:
        async with asking(stub.url, a_ledger(tmp_path, cap=MAX_ANSWER_TOKENS + 500)) as model:
            await model.complete("", "x")
            with pytest.raises(LanguageModelUnavailable, match="daily token cap"):
                await model.complete("", "x")
    assert len(stub.questions) == 1


def test_a_new_day_begins_at_nothing(tmp_path: Path) -> None:
    clock = Clock()
    ledger = a_ledger(tmp_path, cap=10, clock=clock)
    ledger.reserve(10)
    with pytest.raises(LanguageModelUnavailable):
        ledger.reserve(1)
    clock.at += timedelta(hours=1)
    ledger.reserve(10)
    assert ledger.spent == 10


def test_every_process_of_the_folder_counts_together(tmp_path: Path) -> None:
    first, second = a_ledger(tmp_path, cap=10), a_ledger(tmp_path, cap=10)
    first.reserve(6)
    with pytest.raises(LanguageModelUnavailable):
        second.reserve(6)
    second.correct(6, 1)
    assert first.spent == 1


def test_many_at_once_never_cross_the_cap(tmp_path: Path) -> None:
    def spend(taken: list[int]) -> None:
        ledger = a_ledger(tmp_path, cap=50)
        for _ in range(10):
            try:
                ledger.reserve(3)
            except LanguageModelUnavailable:
                return
            taken.append(3)

    taken: list[int] = []
    threads = [threading.Thread(target=spend, args=(taken,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sum(taken) == a_ledger(tmp_path).spent == 48


@hypothesis_settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60)), max_size=12))
def test_what_is_reserved_never_crosses_the_cap(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[int, int]]
) -> None:
    ledger = a_ledger(tmp_path_factory.mktemp("ledger"), cap=100)
    for reserved, used in calls:
        try:
            ledger.reserve(reserved)
        except LanguageModelUnavailable:
            continue
        assert ledger.spent <= 100
        ledger.correct(reserved, min(used, reserved))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"date": "2026-03-01", "tokens": "many"}', "\x00"])
def test_a_count_that_cannot_be_read_spends_nothing_more(tmp_path: Path, text: str) -> None:
    (tmp_path / "llm-tokens.json").write_text(text)
    with pytest.raises(LanguageModelUnavailable, match="cannot be read"):
        a_ledger(tmp_path).reserve(1)


def test_a_folder_that_cannot_be_written_spends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LanguageModelUnavailable, match="cannot be written"):
        a_ledger(tmp_path / "file").reserve(1)
    (tmp_path / "llm-tokens.json").mkdir()
    with pytest.raises(LanguageModelUnavailable):
        a_ledger(tmp_path).reserve(1)


def test_the_file_holds_a_date_and_a_figure_only(tmp_path: Path) -> None:
    a_ledger(tmp_path).reserve(5)
    assert json.loads((tmp_path / "llm-tokens.json").read_text()) == {"date": "2026-03-01", "tokens": 5}
