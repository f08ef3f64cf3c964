"""Vectors from an embedding server: anything with OpenAI's `/v1/embeddings`, or TEI's `/embed`."""

import asyncio
import json
import math
import random
import re
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from contextd.adapters.circuit_breaker import CircuitBreaker
from contextd.domain.errors import EmbedderUnavailable, Misconfigured
from contextd.domain.records import Purpose, Vector
from contextd.domain.words import split_words

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

BATCH: Final = 32
MAX_CHARS: Final = 8_000
"""Of one text. A server may refuse what its model cannot hold; the beginning is better than nothing."""
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024

_REMEDIES: Final = {
    401: "check EMBEDDING_API_KEY",
    403: "check EMBEDDING_API_KEY",
    404: "check EMBEDDING_BASE_URL and EMBEDDING_MODEL",
}


@dataclass(frozen=True, slots=True)
class Patience:
    """`total_s` holds for one request, all its tries and the pauses between them."""

    connect_s: float = 2.0
    total_s: float = 20.0
    tries: int = 3
    backoff_s: float = 0.25


class _Failed(Exception):
    """One try that brought no vectors. `unwell` blames the server, `again` hopes for the next try."""

    def __init__(
        self,
        reason: str,
        *,
        unwell: bool = True,
        again: bool = False,
        wait_s: float = 0.0,
        remedy: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy
        self.unwell, self.again, self.wait_s = unwell, again, wait_s


class RemoteEmbedder:
    """Texts are sent as they are. Every vector that comes back is checked, then normalised."""

    def __init__(
        self,
        base_url: str,
        model: str,
        dimension: int | None = None,
        api_key: str | None = None,
        *,
        patience: Patience | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self._url, self._is_tei = _endpoint(base_url)
        self._headers = _headers(api_key)
        self._model = model
        self._dimension = dimension
        self._patience = patience or Patience()
        self._breaker = breaker or CircuitBreaker()
        self._last_failure = ""
        self._client: AsyncClient | None = None
        self._closed = False

    @property
    def model(self) -> str:
        return self._model

    @property
    def dimension(self) -> int:
        """Learned from the first answer, unless it was given. Raises EmbedderUnavailable until then."""
        if self._dimension is None:
            raise EmbedderUnavailable("the embedding endpoint has not answered yet")
        return self._dimension

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        """Queries and documents alike."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            vectors += await self._request([_sendable(text) for text in texts[start : start + BATCH]])
        return vectors

    def count_tokens(self, text: str) -> int:
        """An estimate, by words: only the server knows its model's pieces."""
        return len(split_words(text))

    async def close(self) -> None:
        self._closed = True
        if self._client is not None:
            await self._client.aclose()

    async def _request(self, texts: list[str]) -> list[Vector]:
        time = asyncio.get_running_loop().time
        deadline = time() + self._patience.total_s
        tried = 0
        while True:
            tried += 1
            try:
                return await self._attempt(texts, deadline)
            except _Failed as failure:
                pause = max(failure.wait_s, self._patience.backoff_s * 2**tried * random.random())
                if not failure.again or tried == self._patience.tries or time() + pause >= deadline:
                    raise EmbedderUnavailable(failure.reason, failure.remedy) from failure
            await asyncio.sleep(pause)

    async def _attempt(self, texts: list[str], deadline: float) -> list[Vector]:
        if not self._breaker.admit():
            raise EmbedderUnavailable(f"{self._last_failure}; it is left alone for some seconds")
        try:
            vectors = self._checked(await self._ask(texts, deadline), len(texts))
        except _Failed as failure:
            if failure.unwell:
                self._last_failure = failure.reason
                self._breaker.failed()
            else:
                self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return vectors

    async def _ask(self, texts: list[str], deadline: float) -> bytes:
        import httpx2

        body = json.dumps(self._question(texts)).encode()
        try:
            async with (
                asyncio.timeout_at(deadline),
                self._open_client().stream("POST", self._url, content=body) as response,
            ):
                _check_status(response)
                return await _read(response)
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise _Failed("the embedding endpoint took too long", again=True) from error
        except httpx2.RequestError as error:
            raise _Failed("the embedding endpoint cannot be reached", again=True) from error

    def _question(self, texts: list[str]) -> dict[str, object]:
        if self._is_tei:
            return {"inputs": texts, "truncate": True}
        return {"model": self._model, "input": texts}

    def _open_client(self) -> "AsyncClient":
        import httpx2

        if self._closed:
            raise EmbedderUnavailable("the embedder is closed", "start contextd again")
        if self._client is None:
            timeout = httpx2.Timeout(self._patience.total_s, connect=self._patience.connect_s)
            # Texts go to the address that was set and nowhere else: no proxy or login of the
            # environment, no redirect.
            self._client = httpx2.AsyncClient(
                headers=self._headers, timeout=timeout, trust_env=False, follow_redirects=False
            )
        return self._client

    def _checked(self, body: bytes, count: int) -> list[Vector]:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _Failed("the embedding endpoint did not answer in JSON") from error
        rows = answer if self._is_tei else _openai_rows(answer)
        if not isinstance(rows, list) or len(rows) != count:
            raise _Failed("the embedding endpoint did not answer with one vector for each text")
        vectors = [_vector(row) for row in rows]
        dimension = self._dimension or len(vectors[0]) // 4
        if any(len(vector) != 4 * dimension for vector in vectors):
            raise _Failed("the embedding endpoint answered with vectors of another dimension")
        self._dimension = dimension
        return vectors


def _endpoint(base_url: str) -> tuple[str, bool]:
    """The address to post to, and whether TEI's own form is spoken there. Decided by the path alone."""
    parts = _web_address(base_url)
    path = parts.path.rstrip("/")
    if not path.endswith(("/embeddings", "/embed")):
        path += "/embeddings" if re.search(r"/v\d+$", path) else "/embed"
    return urlunsplit(parts._replace(path=path, fragment="")), path.endswith("/embed")


def _web_address(base_url: str) -> SplitResult:
    try:
        parts = urlsplit(base_url)
        usable = (
            base_url.isprintable()
            and parts.scheme in ("http", "https")
            and bool((parts.hostname or "").encode("idna"))
            and parts.port != 0
        )
    except ValueError:
        usable = False
    if not usable:
        # The value is not repeated: a URL may hold a password.
        raise Misconfigured(
            "EMBEDDING_BASE_URL is not a web address", "use the form http://localhost:8081/v1"
        )
    return parts


def _headers(api_key: str | None) -> dict[str, str]:
    # A compressed answer could unfold to any size.
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
    }
    if api_key is None:
        return headers
    if not (api_key.isascii() and api_key.isprintable()):
        raise Misconfigured("EMBEDDING_API_KEY holds characters that no header can", "set the key again")
    return {**headers, "Authorization": f"Bearer {api_key}"}


def _sendable(text: str) -> str:
    """Valid Unicode, of bounded length, and not empty: OpenAI and TEI both refuse an empty string."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode() or " "


def _check_status(response: "Response") -> None:
    status = response.status_code
    if status == 200:
        return
    after = response.headers.get("retry-after", "")
    unwell = status == 429 or status >= 500
    raise _Failed(
        f"the embedding endpoint answered with status {status}",
        unwell=unwell,
        again=unwell,
        wait_s=float(after) if re.fullmatch(r"[0-9]{1,9}", after) else 0.0,
        remedy=_REMEDIES.get(status),
    )


async def _read(response: "Response") -> bytes:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _Failed("the embedding endpoint answered in a compressed form that was not asked for")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise _Failed("the embedding endpoint's answer is too large")
    return bytes(body)


def _openai_rows(answer: object) -> list[object] | None:
    """The vectors in the order of the texts; None when the answer has another form."""
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        return None
    try:
        rows = {item.get("index", place): item["embedding"] for place, item in enumerate(items)}
        return [rows[place] for place in range(len(items))]
    except (AttributeError, KeyError, TypeError):
        return None


def _vector(row: object) -> Vector:
    try:
        norm = math.hypot(*row) if isinstance(row, list) else 0.0
    except (TypeError, OverflowError):
        norm = 0.0
    if not (isinstance(row, list) and sys.float_info.min <= norm < math.inf):
        raise _Failed("the embedding endpoint answered with something that is no vector")
    return Vector(struct.pack(f"<{len(row)}f", *(number / norm for number in row)))
