"""The static model for code: word pieces, weights, and a vector that finds what was asked for."""

import ast
import asyncio
import hashlib
import json
import math
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers

import contextd
from contextd.adapters.code_static import DIMENSION, MAX_PIECES, MODEL, CodeStatic
from contextd.domain.errors import EmbedderUnavailable
from contextd.domain.ports import Embedder
from contextd.domain.words import split_words

MODELS = Path(str(files("contextd.adapters"))) / "models"
TABLES, VOCABULARY = "code-static.npz", "code-static.vocab.txt"
SHORT = "close idle sessions"
LONG = "the worker reads a batch of records from the queue and writes every one of them to the store " * 60

SCRIPTS = [*"aZ9_ éÅñßİΣςжЙ日本ガ한가ﬁ²½ا\u0301\u200b\u00ad\n", "Http", "résumé", "\ud800"]
WORDS = [
    *SHORT.split(),
    "parseHTTPRequest",
    "max_retry_count",
    "err",
    "err",
    "x",
    "qzxjv",
    "\n",
    "42",
    "日本",
]
mixtures = st.lists(st.sampled_from(SCRIPTS)).map("".join)
sources = st.lists(st.sampled_from(WORDS), max_size=700).map(" ".join)
texts = st.one_of(st.text(), mixtures, sources)


@pytest.fixture(scope="module")
def model() -> Iterator[CodeStatic]:
    embedder = CodeStatic()
    yield embedder
    asyncio.run(embedder.close())


# --- word pieces ----------------------------------------------------------------------


@cache
def vocabulary() -> list[str]:
    return (MODELS / VOCABULARY).read_text(encoding="utf-8").splitlines()


@cache
def oracle() -> Tokenizer:
    """The tokenizer that the model was trained with, as the library builds it."""
    ids = {piece: id for id, piece in enumerate(vocabulary())}
    made = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=40))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


def expected_pieces(text: str) -> list[int]:
    unknown = vocabulary().index("[UNK]")
    return [id for id in oracle().encode(" ".join(split_words(text))).ids if id != unknown]


@settings(max_examples=400, deadline=None)
@given(text=texts)
def test_any_text_has_the_pieces_that_the_library_gives_it(model: CodeStatic, text: str) -> None:
    assert model.pieces(text) == expected_pieces(text)


def test_every_letter_and_digit_of_unicode_has_the_pieces_that_the_library_gives_it(
    model: CodeStatic,
) -> None:
    letters = [chr(point) for point in range(sys.maxunicode + 1) if chr(point).isalnum()]
    for start in range(0, len(letters), 4096):
        text = " ".join(f"{letter} a{letter} é{letter}" for letter in letters[start : start + 4096])
        assert model.pieces(text) == expected_pieces(text)


def test_source_code_has_the_pieces_that_the_library_gives_it(model: CodeStatic) -> None:
    for source in [*Path(contextd.__file__).parent.rglob("*.py"), Path(json.__file__), Path(ast.__file__)]:
        text = source.read_text(encoding="utf-8")
        assert model.pieces(text) == expected_pieces(text)


@pytest.mark.parametrize("length", [39, 40, 41, 5000])
def test_a_word_of_more_than_forty_letters_is_unknown(model: CodeStatic, length: int) -> None:
    for word in ("a" * length, "é" * length, "a" * length + "_close"):
        assert model.pieces(word) == expected_pieces(word)
    assert bool(model.pieces("a" * length)) == (length <= 40)


@settings(max_examples=100, deadline=None)
@given(text=texts)
def test_the_pieces_of_lines_joined_are_those_of_the_text(model: CodeStatic, text: str) -> None:
    assert [piece for line in text.splitlines() for piece in model.pieces(line)] == model.pieces(text)


def test_more_identifiers_than_are_remembered_change_nothing(model: CodeStatic) -> None:
    before = model.pieces("closeIdleSessions")
    many = " ".join(f"name{number}" for number in range(70_000))
    assert len(model.pieces(many)) > 140_000
    assert model.pieces("closeIdleSessions") == before


def test_identifiers_and_prose_share_their_pieces(model: CodeStatic) -> None:
    assert model.pieces("closeIdleSessions(qzxjv)") == model.pieces("close_idle sessions qzxjv!")


def test_pieces_of_the_whole_text_are_counted_without_unknown_words(model: CodeStatic) -> None:
    assert model.count_tokens("") == model.count_tokens("ꙮ ((( " + "z" * 41) == 0
    assert model.count_tokens("ꙮ " + SHORT) == 3
    assert model.count_tokens(LONG) == len(model.pieces(LONG)) > MAX_PIECES


# --- the formula ----------------------------------------------------------------------


@cache
def arrays() -> dict[str, NDArray[np.float64]]:
    with np.load(MODELS / TABLES, allow_pickle=False) as loaded:
        return {name: loaded[name].astype(np.float64) for name in loaded.files}


def normalised(total: NDArray[np.float64]) -> NDArray[np.float64]:
    length = math.hypot(*total)
    return total / length if length else total


def literal_document(text: str) -> NDArray[np.float64]:
    """As the model's card has it, word by word."""
    of, ids = arrays(), expected_pieces(text)[:MAX_PIECES]
    total = np.zeros(DIMENSION)
    for position, id in enumerate(ids):
        place = of["pd"][min(15, math.floor(2 * math.log2(position + 1)))]
        weight = math.exp(of["gd"][id]) * math.exp(place) * ids.count(id) ** (float(of["al"]) - 1)
        total += weight * of["E8"][id] * of["sc"][id]
    return normalised(total)


def literal_query(text: str) -> NDArray[np.float64]:
    of = arrays()
    total = np.zeros(DIMENSION)
    for id in expected_pieces(text)[:MAX_PIECES]:
        total += math.exp(of["gq"][id]) * of["E8"][id] * of["sc"][id]
    return normalised(total)


@settings(max_examples=150, deadline=None)
@given(text=texts)
@example(text=LONG)
def test_a_vector_is_what_the_formula_says(model: CodeStatic, text: str) -> None:
    document, query = model.document(model.pieces(text)), model.query(text)
    assert document.dtype == query.dtype == np.float32
    assert document == pytest.approx(literal_document(text), abs=2e-6)
    assert query == pytest.approx(literal_query(text), abs=2e-6)


@pytest.mark.parametrize("text", ["", "  \n", "ꙮ", "{}();", "z" * 41])
def test_a_text_without_a_known_word_has_the_zero_vector(model: CodeStatic, text: str) -> None:
    for vector in (model.document(model.pieces(text)), model.query(text)):
        assert vector.tolist() == [0.0] * DIMENSION


def test_only_the_beginning_of_a_long_text_is_seen(model: CodeStatic) -> None:
    pieces = model.pieces(LONG)
    assert (model.document(pieces) == model.document(pieces[:MAX_PIECES])).all()
    assert (model.document(pieces) != model.document(pieces[: MAX_PIECES - 1])).any()
    assert (model.query(LONG) == model.query(LONG + " tail")).all()


def test_a_text_has_one_vector_whatever_came_before_it(model: CodeStatic) -> None:
    asked = [SHORT, LONG, "parseHTTPRequest", "日本 résumé", "for i := range items { close(i) }"]
    fresh = CodeStatic()
    forwards = [(model.query(text), model.document(model.pieces(text))) for text in asked]
    backwards = [(fresh.query(text), fresh.document(fresh.pieces(text))) for text in reversed(asked)]
    for one, other in zip(forwards, reversed(backwards), strict=True):
        assert one[0].tobytes() == other[0].tobytes()
        assert one[1].tobytes() == other[1].tobytes()


def test_threads_that_work_at_once_get_the_same_vectors() -> None:
    shared = CodeStatic()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: shared.document(shared.pieces(LONG)).tobytes(), range(64)))
    assert len(set(found)) == 1


# --- meaning --------------------------------------------------------------------------

FUNCTIONS = """
def save_avatar(user, image): path = media_root / f"{user.id}.png"; image.resize((64, 64)).save(path)
def parse_query_string(url): return dict(pair.split("=") for pair in url.split("?")[1].split("&"))
def send_mail(smtp, to, subject, body): smtp.sendmail(SENDER, to, f"Subject: {subject}\\n\\n{body}")
def hash_password(plain): salt = os.urandom(16); return salt + pbkdf2_hmac("sha256", plain, salt, 100000)
def check_login(user, plain): return compare_digest(user.password, derive(plain, user.salt))
def read_csv(path): return [row for row in csv.reader(path.open())]
def write_json(path, value): path.write_text(json.dumps(value, indent=2))
def call_with_backoff(send, tries): [send() or sleep(2 ** attempt) for attempt in range(tries)]
def on_sigterm(server): server.stop_accepting(); server.drain(); server.close()
def binary_search(items, x): lo, hi = 0, len(items); mid = (lo + hi) // 2
def merge_sorted(left, right): return [left.pop(0) if left[0] < right[0] else right.pop(0)]
def evict_oldest(cache): cache.popitem(last=False) if len(cache) > cache.capacity else None
def render_template(name, context): return environment.get_template(name).render(**context)
def add_route(router, method, path, handler): router.tree[method].insert(path, handler)
def gzip_response(response): response.body = gzip.compress(response.body); response.encoding = "gzip"
def open_transaction(connection): connection.execute("BEGIN")
def roll_back(connection): connection.execute("ROLLBACK"); connection.release()
def create_table(connection, name, columns): connection.execute(f"CREATE TABLE {name} ({columns})")
def days_between(start, end): return (end.date() - start.date()).days
def to_celsius(fahrenheit): return (fahrenheit - 32) * 5 / 9
def draw_circle(canvas, x, y, radius): canvas.arc(x, y, radius, 0, 2 * pi); canvas.fill()
def load_settings(file): return tomllib.loads(file.read_text())
def log_request(logger, request): logger.info("%s %s %s", request.method, request.path, request.remote_addr)
def websocket_ping(socket): socket.send(PING_FRAME); socket.expect(PONG_FRAME, timeout=10)
def download(url, target): target.write_bytes(http.get(url).content)
def count_words(text): return Counter(text.lower().split())
def limit_rate(bucket, client): raise TooManyRequests if bucket.take(client) < 0 else None
def verify_token(jwt, key): payload, signature = jwt.split("."); return signed(payload, key) == signature
def walk_directory(root): yield from (file for file in root.rglob("*") if file.is_file())
def invert_matrix(matrix): return solve(matrix, identity(len(matrix)))
"""

QUESTIONS = {
    "how do I shut the server down gracefully when a signal arrives": "on_sigterm",
    "where are passwords hashed with a salt": "hash_password",
    "retry a failed request with exponential delay": "call_with_backoff",
    "find a value in a sorted list": "binary_search",
    "remove the least recently used entry when the cache is full": "evict_oldest",
    "which function sends an email": "send_mail",
    "read the configuration file": "load_settings",
    "list all files below a folder": "walk_directory",
    "convert temperature to celsius": "to_celsius",
    "undo the database changes": "roll_back",
    "compress the http response body": "gzip_response",
    "reject clients that send too many requests": "limit_rate",
}


@pytest.mark.parametrize(("question", "name"), QUESTIONS.items())
def test_a_question_finds_its_function_among_the_nearest(
    model: CodeStatic, question: str, name: str
) -> None:
    functions = FUNCTIONS.strip().splitlines()
    asked = model.query(question)
    near = sorted(functions, key=lambda text: -float(model.document(model.pieces(text)) @ asked))
    assert name in [text.removeprefix("def ").split("(")[0] for text in near[:3]]


# --- the port -------------------------------------------------------------------------


@pytest.mark.anyio
async def test_both_purposes_through_the_port_give_the_vectors_of_the_synchronous_half(
    model: CodeStatic,
) -> None:
    port: Embedder = model
    asked = [SHORT, "", "parseHTTPRequest", "lone \ud800 surrogate", LONG] * 20
    documents, queries = await port.embed(asked, "document"), await port.embed(asked, "query")
    assert documents == [model.document(model.pieces(text)).tobytes() for text in asked]
    assert queries == [model.query(text).tobytes() for text in asked]
    assert documents[0] != queries[0]
    assert await port.embed([], "query") == []


@pytest.mark.anyio
async def test_the_model_says_what_it_is(model: CodeStatic) -> None:
    (vector,) = await model.embed([SHORT], "query")
    assert model.model == MODEL == "code-static@d188abf0147a"
    assert model.dimension == DIMENSION == len(vector) // 4 == 256


@pytest.mark.anyio
async def test_a_query_does_not_wait_for_a_whole_list_of_documents(model: CodeStatic) -> None:
    work = asyncio.create_task(model.embed([LONG] * 2_000, "document"))
    await asyncio.sleep(0)
    await model.embed([SHORT], "query")
    assert not work.done()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


@pytest.mark.anyio
async def test_a_closed_model_is_unavailable_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    embedder = CodeStatic()
    await embedder.embed([SHORT], "query")
    (worker,) = (thread for thread in set(threading.enumerate()) - before if "code-static" in thread.name)
    await embedder.close()
    await embedder.close()
    assert not worker.is_alive()
    with pytest.raises(EmbedderUnavailable, match="closed"):
        await embedder.embed([SHORT], "query")


# --- the files ------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_missing_model_is_unavailable_until_it_is_there(tmp_path: Path) -> None:
    embedder = CodeStatic(tmp_path)
    for name in (TABLES, VOCABULARY):
        with pytest.raises(EmbedderUnavailable, match=f"{name} cannot be read: install contextd again"):
            await embedder.embed([SHORT], "query")
        (tmp_path / name).symlink_to(MODELS / name)
    assert len(await embedder.embed([SHORT], "query")) == 1
    await embedder.close()


def test_files_of_another_model_are_refused(tmp_path: Path) -> None:
    embedder = CodeStatic(tmp_path)
    (tmp_path / VOCABULARY).write_text("[PAD]\n[UNK]\n")
    np.savez(tmp_path / TABLES, E8=np.zeros((2, DIMENSION), np.int8))
    with pytest.raises(
        EmbedderUnavailable, match=r"vocab\.txt is not the file that belongs to .*: install"
    ):
        embedder.pieces(SHORT)
    with pytest.raises(EmbedderUnavailable, match=r"vocab\.txt is not the file that belongs to"):
        embedder.count_tokens(SHORT)
    with pytest.raises(EmbedderUnavailable, match=r"npz is not the file that belongs to"):
        embedder.document([1])


@pytest.mark.parametrize("name", [TABLES, VOCABULARY])
def test_the_card_states_the_size_and_hash_of_each_file(name: str) -> None:
    data = (MODELS / name).read_bytes()
    (row,) = (
        line
        for line in (MODELS / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| `{name}` |")
    )
    assert f"| {len(data):,} | `{hashlib.sha256(data).hexdigest()}` |" in row


USE_THE_MODEL = """
import sys
from contextd.adapters.code_static import CodeStatic
model = CodeStatic()
before = {"numpy", "tokenizers", "onnxruntime"} & set(sys.modules)
model.query("close idle sessions")
print(*sorted(before), {"tokenizers", "onnxruntime"} & set(sys.modules))
"""


def test_nothing_heavy_is_imported_before_use_and_numpy_alone_after_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", USE_THE_MODEL], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout.strip(), done.stderr) == ("set()", "")


HASH_SOME = """
import hashlib
from contextd.adapters.code_static import CodeStatic
model = CodeStatic()
texts = (f"func Step{n}(count int) int {{ return Step{n}(count - {n}) }}" for n in range(400))
print(hashlib.sha256(b"".join(model.document(model.pieces(each)).tobytes() for each in texts)).hexdigest())
"""


def test_the_library_of_linear_algebra_has_no_say_in_a_vector() -> None:
    """OpenBLAS adds up in another order on each kind of processor: the last bits would differ."""
    kinds = ("Haswell", "Sandybridge", "Nehalem")
    hashes = {
        subprocess.run(
            [sys.executable, "-c", HASH_SOME],
            env={"OPENBLAS_CORETYPE": kind},
            capture_output=True,
            timeout=60,
            check=True,
        ).stdout
        for kind in kinds
    }
    assert len(hashes) == 1
