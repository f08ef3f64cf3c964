"""Embedders: the model that ships, and servers that may stand in for it."""

import asyncio
import json
import math
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

import contextd
from contextd.adapters.circuit_breaker import CircuitBreaker
from contextd.adapters.minilm import DIMENSION, MAX_PIECES, MODEL, MiniLM
from contextd.adapters.remote_embedder import BATCH, MAX_CHARS, Patience, RemoteEmbedder
from contextd.adapters.wordpiece import WordPiece
from contextd.domain.errors import EmbedderUnavailable, Misconfigured
from contextd.domain.ports import Embedder
from contextd.domain.records import Vector
from contextd.domain.words import split_words

MODELS = Path(str(files("contextd.adapters"))) / "models"
SHORT = "close idle sessions"
LONG = "the worker reads a batch of records from the queue and writes every one of them to the store " * 30
UNLIMITED = 10**9


def numbers(vector: Vector) -> list[float]:
    return list(struct.unpack(f"<{len(vector) // 4}f", vector))


def cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(numbers(one), numbers(other), strict=True))


# --- word pieces ----------------------------------------------------------------------


@cache
def vocabulary() -> list[str]:
    return (MODELS / "minilm-dev.vocab.txt").read_text(encoding="utf-8").splitlines()


@cache
def wordpiece() -> WordPiece:
    return WordPiece(vocabulary())


@cache
def oracle() -> Tokenizer:
    """The tokenizer that the model was trained with, as the library builds it."""
    ids = {piece: id for id, piece in enumerate(vocabulary())}
    made = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
    )
    return made


def expected_pieces(text: str) -> list[int]:
    ids: list[int] = oracle().encode(" ".join(split_words(text))).ids
    return ids


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text_has_the_pieces_that_the_library_gives_it(text: str) -> None:
    assert wordpiece().encode(text, UNLIMITED) == expected_pieces(text)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([*"aZ9_ éÅñßİΣςжЙ日本ガ한가ﬁ²½ا\u0301\u200b\u00ad\n", "Http", "résumé"])).map(
        "".join
    )
)
def test_a_mixture_of_scripts_has_the_pieces_that_the_library_gives_it(text: str) -> None:
    assert wordpiece().encode(text, UNLIMITED) == expected_pieces(text)


def test_every_letter_and_digit_of_unicode_has_the_pieces_that_the_library_gives_it() -> None:
    letters = [chr(point) for point in range(sys.maxunicode + 1) if chr(point).isalnum()]
    for start in range(0, len(letters), 4096):
        text = " ".join(f"{letter} é{letter}" for letter in letters[start : start + 4096])
        assert wordpiece().encode(text, UNLIMITED) == expected_pieces(text)


def test_source_code_has_the_pieces_that_the_library_gives_it() -> None:
    sources = [*Path(contextd.__file__).parent.rglob("*.py"), Path(json.__file__), Path(asyncio.__file__)]
    for source in sources:
        text = source.read_text(encoding="utf-8")
        assert wordpiece().encode(text, UNLIMITED) == expected_pieces(text)


@pytest.mark.parametrize("length", [99, 100, 101, 5000])
def test_a_word_of_more_than_a_hundred_letters_is_unknown(length: int) -> None:
    for word in ("a" * length, "é" * length, "日" * length):
        assert wordpiece().encode(word, UNLIMITED) == expected_pieces(word)


def test_a_long_text_is_cut_to_the_limit_and_keeps_both_marks() -> None:
    whole, cut = wordpiece().encode(LONG, UNLIMITED), wordpiece().encode(LONG, 16)
    assert cut == [*whole[:15], whole[-1]]


def test_identifiers_and_prose_share_their_pieces() -> None:
    assert wordpiece().encode("closeIdleSessions", 16) == wordpiece().encode("close_idle sessions!", 16)


# --- servers that stand in ------------------------------------------------------------


@dataclass(frozen=True)
class Reply:
    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drips: bool = False
    """A promised body comes in single bytes, each soon enough and all of them never."""


@dataclass(frozen=True)
class Question:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        texts: list[str] = self.body.get("input") or self.body["inputs"]
        return texts


Answer = Callable[[Question], Awaitable[Reply | None]]
"""None hangs up without a word."""


class StubServer:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.questions: list[Question] = []
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await self._read_head(reader):
                path, headers = head
                body = json.loads(await reader.readexactly(int(headers["content-length"])))
                self.questions.append(Question(path, headers, body))
                reply = await self.answer(self.questions[-1])
                if reply is None:
                    break
                length = {"content-length": str(len(reply.body)), **reply.headers}
                lines = [
                    f"HTTP/1.1 {reply.status} x",
                    *(f"{name}: {value}" for name, value in length.items()),
                ]
                writer.write("\r\n".join([*lines, "", ""]).encode() + reply.body)
                await writer.drain()
                while reply.drips:
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(0.01)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _read_head(self, reader: asyncio.StreamReader) -> tuple[str, dict[str, str]] | None:
        first = (await reader.readline()).decode()
        if not first:
            return None
        headers = {}
        while line := (await reader.readline()).decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return first.split()[1], headers


@asynccontextmanager
async def serving(answer: Answer, port: int = 0) -> AsyncIterator[StubServer]:
    stub = StubServer(answer)
    server = await asyncio.start_server(stub.serve, "127.0.0.1", port)
    stub.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield stub
    finally:
        server.close()


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


def vector_of(text: str) -> list[float]:
    """A pretended model: four numbers, not normalised, the same for the same text."""
    return [1.0 + len(text), float(sum(map(ord, text)) % 97), 3.0, -2.0]


def as_json(value: object) -> Reply:
    return Reply(json.dumps(value).encode())


def openai_answer(texts: Sequence[str]) -> Reply:
    """Backwards, because the order of the answer means nothing."""
    items = [{"index": place, "embedding": vector_of(text)} for place, text in enumerate(texts)]
    return as_json({"object": "list", "data": items[::-1], "usage": {"prompt_tokens": 1}})


async def speak_openai(question: Question) -> Reply:
    return openai_answer(question.texts)


async def speak_tei(question: Question) -> Reply:
    return as_json([vector_of(text) for text in question.texts])


def always(reply: Reply | None) -> Answer:
    async def answer(question: Question) -> Reply | None:
        return reply

    return answer


def first(*replies: Reply | None) -> Answer:
    """These replies, then good ones."""
    waiting = iter(replies)

    async def answer(question: Question) -> Reply | None:
        return next(waiting, openai_answer(question.texts))

    return answer


HASTY = Patience(connect_s=2.0, total_s=5.0, backoff_s=0.0)


@asynccontextmanager
async def remote(address: str, path: str = "/v1", **options: Any) -> AsyncIterator[RemoteEmbedder]:
    embedder = RemoteEmbedder(address + path, "some-model", **{"patience": HASTY, **options})
    try:
        yield embedder
    finally:
        await embedder.close()
        # The transport of a connection that was given up is closed in the loop's next rounds.
        await asyncio.sleep(0)


class HandClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


# --- what every embedder does ---------------------------------------------------------


@pytest.fixture(scope="module")
def minilm() -> Iterator[MiniLM]:
    embedder = MiniLM()
    yield embedder
    asyncio.run(embedder.close())


@asynccontextmanager
async def an_embedder(kind: str) -> AsyncIterator[Embedder]:
    if kind == "minilm":
        embedder = MiniLM()
        try:
            yield embedder
        finally:
            await embedder.close()
    else:
        path, speak = ("/v1", speak_openai) if kind == "openai" else ("", speak_tei)
        async with serving(speak) as stub, remote(stub.address, path) as far:
            yield far


every_embedder = pytest.mark.parametrize("kind", ["minilm", "openai", "tei"])
TEXTS = ["close idle sessions", "", "parseHTTPRequest", "日本語 и русский", "lone \ud800 surrogate", LONG]


@every_embedder
@pytest.mark.anyio
async def test_each_text_gets_its_own_vector_in_order_and_normalised(kind: str) -> None:
    async with an_embedder(kind) as embedder:
        together = await embedder.embed(TEXTS, "document")
        alone = [vector for text in TEXTS for vector in await embedder.embed([text], "document")]
        assert together == alone
        for vector in together:
            assert len(numbers(vector)) == embedder.dimension
            assert math.hypot(*numbers(vector)) == pytest.approx(1.0, abs=1e-5)


@every_embedder
@pytest.mark.anyio
async def test_no_texts_give_no_vectors(kind: str) -> None:
    async with an_embedder(kind) as embedder:
        assert await embedder.embed([], "query") == []


@every_embedder
@pytest.mark.anyio
async def test_a_closed_embedder_is_unavailable_and_may_be_closed_again(kind: str) -> None:
    async with an_embedder(kind) as embedder:
        await embedder.embed([SHORT], "query")
        await embedder.close()
        with pytest.raises(EmbedderUnavailable, match="closed"):
            await embedder.embed([SHORT], "query")


@every_embedder
@pytest.mark.anyio
async def test_tokens_of_the_whole_text_are_counted(kind: str) -> None:
    async with an_embedder(kind) as embedder:
        assert embedder.count_tokens("") == 0
        assert embedder.count_tokens(SHORT) == 3
        assert embedder.count_tokens(LONG) > MAX_PIECES


# --- the model that ships -------------------------------------------------------------


@pytest.mark.anyio
async def test_the_model_says_what_it_is(minilm: MiniLM) -> None:
    (vector,) = await minilm.embed([SHORT], "query")
    assert minilm.model == MODEL == "minilm-dev-int8@80af0f590481"
    assert minilm.dimension == DIMENSION == len(numbers(vector)) == 384


@pytest.mark.anyio
async def test_a_text_has_one_vector_whatever_its_company_purpose_or_time(minilm: MiniLM) -> None:
    (alone,) = await minilm.embed([SHORT], "query")
    _, amid, _ = await minilm.embed([LONG, SHORT, "unrelated words"], "document")
    assert alone == amid
    assert [alone] == await minilm.embed([SHORT], "query")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        (
            "how do I stop the server gracefully",
            "shut the daemon down cleanly when SIGTERM arrives",
            "read a table of comma separated values into rows",
        ),
        (
            "retry a failed request with growing delay",
            "def call_with_backoff(send, tries): wait doubles after each error",
            "def render_title(page): return page.heading.upper()",
        ),
        (
            "where are passwords hashed",
            "func bcryptPassword(plain string) (string, error)",
            "func drawChart(w int)",
        ),
    ],
)
async def test_what_means_the_same_is_nearer_than_what_does_not(
    minilm: MiniLM, query: str, near: str, far: str
) -> None:
    asked, nearer, farther = await minilm.embed([query, near, far], "query")
    assert cosine(asked, nearer) > cosine(asked, farther) + 0.1


@pytest.mark.anyio
async def test_only_the_beginning_of_a_long_text_is_seen(minilm: MiniLM) -> None:
    assert minilm.count_tokens(LONG) >= MAX_PIECES
    one, other, different = await minilm.embed([LONG, LONG + "tail", "head " + LONG], "document")
    assert one == other != different


@pytest.mark.anyio
async def test_many_tasks_at_once_load_the_model_once(
    minilm: MiniLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    await minilm.load()
    import onnxruntime  # after the load, which knows how to keep it from reporting its use

    loads: list[object] = []

    class CountedSession(onnxruntime.InferenceSession):  # type: ignore[misc]  # the library has no types
        def __init__(self, *args: object, **options: object) -> None:
            loads.append(args)
            super().__init__(*args, **options)

    monkeypatch.setattr(onnxruntime, "InferenceSession", CountedSession)
    embedder = MiniLM()
    states = [embedder.loaded]
    tasks = [embedder.embed([f"text {number % 4}", SHORT], "query") for number in range(16)]
    answers = await asyncio.gather(embedder.load(), *tasks)
    states.append(embedder.loaded)
    await embedder.close()
    assert [*states, embedder.loaded] == [False, True, False]
    assert len(loads) == 1
    assert len({vectors[1] for vectors in answers if vectors}) == 1


@pytest.mark.anyio
async def test_the_event_loop_runs_on_while_texts_are_embedded(minilm: MiniLM) -> None:
    await minilm.load()
    rounds = 0
    work = asyncio.create_task(minilm.embed([LONG] * 4, "document"))
    while not work.done():
        await asyncio.sleep(0)
        rounds += 1
    assert rounds > 100


@pytest.mark.anyio
async def test_a_query_does_not_wait_for_a_whole_list_of_documents(minilm: MiniLM) -> None:
    work = asyncio.create_task(minilm.embed([LONG] * 20, "document"))
    await asyncio.sleep(0)
    await minilm.embed([SHORT], "query")
    assert not work.done()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


@pytest.mark.anyio
async def test_a_missing_model_is_unavailable_until_it_is_there(tmp_path: Path) -> None:
    embedder = MiniLM(tmp_path / "minilm-dev-int8.onnx")
    for name in ("minilm-dev.vocab.txt", "minilm-dev-int8.onnx"):
        with pytest.raises(EmbedderUnavailable, match=f"{name} cannot be read: install contextd again"):
            await embedder.embed([SHORT], "query")
        (tmp_path / name).symlink_to(MODELS / name)
    assert len(await embedder.embed([SHORT], "query")) == 1
    await embedder.close()


@pytest.mark.anyio
async def test_a_file_of_another_model_is_refused(tmp_path: Path) -> None:
    embedder = MiniLM(tmp_path / "minilm-dev-int8.onnx")
    (tmp_path / "minilm-dev.vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\n")
    with pytest.raises(EmbedderUnavailable, match=r"vocab\.txt is not the file that belongs to"):
        embedder.count_tokens(SHORT)
    (tmp_path / "minilm-dev.vocab.txt").unlink()
    (tmp_path / "minilm-dev.vocab.txt").symlink_to(MODELS / "minilm-dev.vocab.txt")
    (tmp_path / "minilm-dev-int8.onnx").write_bytes(b"something else")
    with pytest.raises(EmbedderUnavailable, match=r"int8\.onnx is not the file that belongs to"):
        await embedder.load()
    await embedder.close()


@pytest.mark.anyio
async def test_no_thread_is_left_when_the_model_is_closed() -> None:
    before = set(threading.enumerate())
    embedder = MiniLM()
    await embedder.embed([SHORT], "query")
    (worker,) = (thread for thread in set(threading.enumerate()) - before if "minilm" in thread.name)
    await embedder.close()
    assert not worker.is_alive()


USE_THE_MODEL = """
import asyncio, sys
from contextd.adapters.minilm import MiniLM
from contextd.adapters.remote_embedder import RemoteEmbedder
embedder = MiniLM()
RemoteEmbedder("http://localhost:8081/v1", "some-model")
heavy = {"onnxruntime", "numpy", "httpx2", "tokenizers"} & set(sys.modules)
async def main():
    await embedder.embed(["a text"], "query")
    await embedder.close()
asyncio.run(main())
print(*sorted(heavy), "tokenizers" in sys.modules)
"""


def test_nothing_heavy_is_imported_before_use_and_the_runtime_leaves_no_trace_of_telemetry(
    tmp_path: Path,
) -> None:
    # Without these the runtime would report its use, and first of all write an id to the cache folder.
    silencers = ("ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "CI", "GITHUB_ACTIONS", "TF_BUILD")
    environment = {name: value for name, value in os.environ.items() if name not in silencers}
    home = {
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", USE_THE_MODEL],
        env=environment | home,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["False"]
    assert done.stderr == ""
    assert list(tmp_path.rglob("*")) == []


# --- a server: what is sent -----------------------------------------------------------


@pytest.mark.anyio
async def test_an_openai_server_is_asked_for_the_model_with_the_key() -> None:
    async with serving(speak_openai) as stub, remote(stub.address, api_key="sk-key") as embedder:
        (vector,) = await embedder.embed([SHORT], "query")
        length = math.hypot(*vector_of(SHORT))
        assert numbers(vector) == pytest.approx([number / length for number in vector_of(SHORT)])
        assert embedder.model == "some-model"
    (question,) = stub.questions
    assert question.path == "/v1/embeddings"
    assert question.headers["authorization"] == "Bearer sk-key"
    assert question.body == {"model": "some-model", "input": [SHORT]}


@pytest.mark.anyio
async def test_a_tei_server_is_asked_in_its_own_form() -> None:
    async with serving(speak_tei) as stub, remote(stub.address, "") as embedder:
        await embedder.embed([SHORT], "query")
    (question,) = stub.questions
    assert question.path == "/embed"
    assert "authorization" not in question.headers
    assert question.body == {"inputs": [SHORT], "truncate": True}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1", "/v1/embeddings"),
        ("/v1/", "/v1/embeddings"),
        ("/api/v3", "/api/v3/embeddings"),
        ("/odd/embeddings", "/odd/embeddings"),
        ("/v1?version=2", "/v1/embeddings?version=2"),
        ("", "/embed"),
        ("/", "/embed"),
        ("/tei", "/tei/embed"),
        ("/embed", "/embed"),
    ],
)
async def test_the_address_decides_the_form(path: str, asked: str) -> None:
    speak = speak_openai if "embeddings" in asked else speak_tei
    async with serving(speak) as stub, remote(stub.address, path) as embedder:
        await embedder.embed([SHORT], "query")
    assert [question.path for question in stub.questions] == [asked]


@pytest.mark.anyio
async def test_many_texts_go_in_batches_and_come_back_in_order() -> None:
    texts = [f"text number {number}" for number in range(2 * BATCH + 6)]
    async with serving(speak_openai) as stub, remote(stub.address) as embedder:
        vectors = await embedder.embed(texts, "document")
        assert vectors == [vector for text in texts for vector in await embedder.embed([text], "document")]
    assert [len(question.texts) for question in stub.questions[:3]] == [BATCH, BATCH, 6]


@pytest.mark.anyio
async def test_a_server_never_gets_an_empty_an_endless_or_an_invalid_text() -> None:
    async with serving(speak_openai) as stub, remote(stub.address) as embedder:
        await embedder.embed(["", "x" * (MAX_CHARS + 1), "a\ud800b"], "document")
    assert stub.questions[0].texts == [" ", "x" * MAX_CHARS, "a?b"]


@pytest.mark.anyio
async def test_texts_go_through_no_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    async with serving(speak_openai) as stub, remote(stub.address) as embedder:
        assert await embedder.embed([SHORT], "query")


@pytest.mark.anyio
async def test_texts_follow_no_redirect() -> None:
    async with serving(speak_openai) as elsewhere:
        away = Reply(b"", 307, {"location": f"{elsewhere.address}/v1/embeddings"})
        async with serving(always(away)) as stub, remote(stub.address) as embedder:
            with pytest.raises(EmbedderUnavailable, match="status 307"):
                await embedder.embed([SHORT], "query")
        assert elsewhere.questions == []


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost:8081",
        "ftp://host/v1",
        "http://",
        "http://host:99999",
        "http://a..b/",
        "http://[::1",
        "http://h\n",
    ],
)
def test_what_is_no_web_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(Misconfigured, match="EMBEDDING_BASE_URL"):
        RemoteEmbedder(address, "some-model")


def test_a_refused_setting_is_not_repeated() -> None:
    with pytest.raises(Misconfigured) as refused:
        RemoteEmbedder("ftp://user:hunter2@host/v1", "some-model")
    assert "hunter2" not in str(refused.value)
    with pytest.raises(Misconfigured) as refused:
        RemoteEmbedder("http://host/v1", "some-model", api_key="hunter2\n")
    assert "hunter2" not in str(refused.value)


# --- a server: what comes back --------------------------------------------------------

GOOD = {"index": 0, "embedding": [1.0, 2.0]}
HOSTILE = {
    "nothing": b"",
    "no JSON": b"<html>PRIVATE</html>",
    "no Unicode": b"\xff\xfe\xfa",
    "too deep": b"[" * 100_000,
    "a number too long": b'{"data":[{"embedding":[' + b"9" * 5000 + b"]}]}",
    "a number too large": b'{"data":[{"embedding":[' + b"9" * 400 + b"]}]}",
    "another form": b'{"vectors":"PRIVATE"}',
    "a bare list": b"[[1.0,2.0]]",
    "no list": b'{"data":{"0":"PRIVATE"}}',
    "text for data": b'{"data":"PRIVATE"}',
    "no items": b'{"data":["PRIVATE"]}',
    "no embedding": b'{"data":[{"index":0,"PRIVATE":1}]}',
    "too few": b'{"data":[]}',
    "too many": json.dumps({"data": [GOOD, {**GOOD, "index": 1}]}).encode(),
    "an index out of place": b'{"data":[{"index":7,"embedding":[1.0]}]}',
    "an index of another kind": b'{"data":[{"index":[],"embedding":[1.0]}]}',
    "not a number": b'{"data":[{"embedding":[NaN,1.0]}]}',
    "infinity": b'{"data":[{"embedding":[1e999,1.0]}]}',
    "zero": b'{"data":[{"embedding":[0.0,0.0]}]}',
    "an empty vector": b'{"data":[{"embedding":[]}]}',
    "words for numbers": b'{"data":[{"embedding":["PRIVATE","1"]}]}',
    "null for a number": b'{"data":[{"embedding":[null]}]}',
    "a nested vector": b'{"data":[{"embedding":[[1.0]]}]}',
    "text for a vector": b'{"data":[{"embedding":"AACAPw=="}]}',
}


@pytest.mark.anyio
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
async def test_an_answer_that_is_no_vectors_is_refused_without_repeating_it(body: bytes) -> None:
    async with serving(always(Reply(body))) as stub, remote(stub.address) as embedder:
        with pytest.raises(EmbedderUnavailable) as refused:
            await embedder.embed(["PRIVATE"], "query")
        assert "PRIVATE" not in str(refused.value)
        assert len(stub.questions) == 1


@pytest.mark.anyio
async def test_an_answer_without_indexes_is_taken_in_its_order() -> None:
    reply = as_json({"data": [{"embedding": [3.0, 4.0]}, {"embedding": [1.0, 0.0]}]})
    async with serving(always(reply)) as stub, remote(stub.address) as embedder:
        one, other = await embedder.embed(["one", "other"], "query")
        assert numbers(one) == pytest.approx([0.6, 0.8])
        assert numbers(other) == [1.0, 0.0]


@pytest.mark.anyio
async def test_an_answer_without_end_is_given_up() -> None:
    async def pour(question: Question) -> Reply:
        return Reply(b" " * (17 * 1024 * 1024))

    async with serving(pour) as stub, remote(stub.address) as embedder:
        with pytest.raises(EmbedderUnavailable, match="too large"):
            await embedder.embed([SHORT], "query")


@pytest.mark.anyio
async def test_a_compressed_answer_is_not_unfolded() -> None:
    reply = Reply(b"\x1f\x8b", headers={"content-encoding": "gzip"})
    async with serving(always(reply)) as stub, remote(stub.address) as embedder:
        with pytest.raises(EmbedderUnavailable, match="compressed"):
            await embedder.embed([SHORT], "query")
    assert stub.questions[0].headers["accept-encoding"] == "identity"


@pytest.mark.anyio
async def test_the_dimension_is_learned_from_the_first_answer_and_then_held() -> None:
    other = as_json({"data": [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]})
    async with serving(first()) as stub, remote(stub.address) as embedder:
        with pytest.raises(EmbedderUnavailable, match="not answered yet"):
            _ = embedder.dimension
        await embedder.embed([SHORT], "query")
        assert embedder.dimension == 4
        stub.answer = always(other)
        with pytest.raises(EmbedderUnavailable, match="another dimension"):
            await embedder.embed([SHORT], "query")
        assert embedder.dimension == 4


@pytest.mark.anyio
async def test_a_given_dimension_is_held_from_the_start() -> None:
    async with serving(speak_openai) as stub, remote(stub.address, dimension=384) as embedder:
        assert embedder.dimension == 384
        with pytest.raises(EmbedderUnavailable, match="another dimension"):
            await embedder.embed([SHORT], "query")


@pytest.mark.anyio
async def test_vectors_of_unequal_length_are_refused() -> None:
    items = [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]
    async with serving(always(as_json({"data": items}))) as stub, remote(stub.address) as embedder:
        with pytest.raises(EmbedderUnavailable, match="another dimension"):
            await embedder.embed(["one", "other"], "query")


# --- a server: when it fails ----------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize(
    "failure",
    [Reply(b"", 500), Reply(b"", 503), Reply(b"", 429), Reply(b"", 429, {"retry-after": "0"}), None],
    ids=["500", "503", "429", "429 with a time", "hung up"],
)
async def test_a_passing_failure_is_tried_again(failure: Reply | None) -> None:
    async with serving(first(failure, failure)) as stub, remote(stub.address) as embedder:
        assert len(await embedder.embed([SHORT], "query")) == 1
        assert len(stub.questions) == 3


@pytest.mark.anyio
async def test_a_lasting_failure_is_told_after_three_tries() -> None:
    async with serving(always(Reply(b"PRIVATE", 500))) as stub, remote(stub.address) as embedder:
        with pytest.raises(EmbedderUnavailable, match="status 500") as failed:
            await embedder.embed([SHORT], "query")
        assert len(stub.questions) == 3
    assert "PRIVATE" not in str(failed.value)


@pytest.mark.anyio
async def test_a_server_that_asks_for_more_time_than_there_is_is_not_waited_for() -> None:
    busy = Reply(b"", 429, {"retry-after": "3600"})
    async with serving(always(busy)) as stub, remote(stub.address) as embedder:
        with pytest.raises(EmbedderUnavailable, match="status 429"):
            await embedder.embed([SHORT], "query")
        assert len(stub.questions) == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "remedy"), [(401, "EMBEDDING_API_KEY"), (404, "EMBEDDING_MODEL"), (413, "")]
)
async def test_a_refused_request_is_not_tried_again_and_is_no_sign_of_illness(
    status: int, remedy: str
) -> None:
    refusals = [Reply(b"", status)] * 6
    async with serving(first(*refusals)) as stub, remote(stub.address) as embedder:
        for _ in refusals:
            with pytest.raises(EmbedderUnavailable, match=rf"status {status}.*{remedy}"):
                await embedder.embed([SHORT], "query")
        assert len(stub.questions) == len(refusals)
        assert await embedder.embed([SHORT], "query")


@pytest.mark.anyio
async def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    released = asyncio.Event()

    async def sit(question: Question) -> None:
        await released.wait()

    impatient = Patience(total_s=0.1, backoff_s=0.0)
    async with serving(sit) as stub, remote(stub.address, patience=impatient) as embedder:
        async with asyncio.timeout(5):
            with pytest.raises(EmbedderUnavailable, match="took too long"):
                await embedder.embed([SHORT], "query")
        released.set()


@pytest.mark.anyio
async def test_a_server_that_answers_in_drops_is_given_up_in_time() -> None:
    drops = Reply(b"", headers={"content-length": "1000000"}, drips=True)
    impatient = Patience(total_s=0.1, backoff_s=0.0)
    async with serving(always(drops)) as stub, remote(stub.address, patience=impatient) as embedder:
        async with asyncio.timeout(5):
            with pytest.raises(EmbedderUnavailable, match="took too long"):
                await embedder.embed([SHORT], "query")


@pytest.mark.anyio
async def test_a_callers_own_deadline_is_not_mistaken_for_the_servers_failure() -> None:
    released = asyncio.Event()

    async def sit(question: Question) -> None:
        await released.wait()

    async with serving(sit) as stub, remote(stub.address) as embedder:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await embedder.embed([SHORT], "query")
        released.set()
        stub.answer = speak_openai
        assert await embedder.embed([SHORT], "query")


@pytest.mark.anyio
async def test_a_server_that_is_down_is_left_alone_and_found_again_when_it_is_back() -> None:
    clock, port = HandClock(), free_port()
    breaker = CircuitBreaker(threshold=5, cooldown_s=10.0, clock=clock)
    async with remote(f"http://127.0.0.1:{port}", breaker=breaker) as embedder:
        with pytest.raises(EmbedderUnavailable, match="cannot be reached"):
            await embedder.embed([SHORT], "query")
        with pytest.raises(EmbedderUnavailable, match="left alone"):
            await embedder.embed([SHORT], "query")
        async with serving(speak_openai, port) as stub:
            with pytest.raises(EmbedderUnavailable, match="cannot be reached; it is left alone"):
                await embedder.embed([SHORT], "query")
            assert stub.questions == []
            clock.now += 10.0
            assert await embedder.embed([SHORT], "query")
            assert await embedder.embed([SHORT], "query")


@pytest.mark.anyio
async def test_one_probe_alone_goes_to_a_server_that_kept_failing() -> None:
    clock = HandClock()
    breaker = CircuitBreaker(threshold=3, cooldown_s=10.0, clock=clock)
    async with serving(always(Reply(b"", 500))) as stub, remote(stub.address, breaker=breaker) as embedder:
        with pytest.raises(EmbedderUnavailable):
            await embedder.embed([SHORT], "query")
        clock.now += 10.0
        asked = len(stub.questions)
        outcomes = await asyncio.gather(
            *(embedder.embed([SHORT], "query") for _ in range(8)), return_exceptions=True
        )
        assert all(isinstance(outcome, EmbedderUnavailable) for outcome in outcomes)
        assert len(stub.questions) == asked + 1


def test_a_breaker_opens_after_failures_in_a_row_only() -> None:
    breaker = CircuitBreaker(threshold=3, cooldown_s=10.0, clock=HandClock())
    for _ in range(5):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.admit()
    for _ in range(3):
        breaker.failed()
    assert breaker.is_open
    assert not breaker.admit()


def test_a_probe_that_never_reports_back_costs_one_cooldown() -> None:
    clock = HandClock()
    breaker = CircuitBreaker(threshold=1, cooldown_s=10.0, clock=clock)
    breaker.failed()
    clock.now = 10.0
    assert [breaker.admit(), breaker.admit()] == [True, False]
    clock.now = 20.0
    assert breaker.admit()
    breaker.succeeded()
    assert not breaker.is_open
