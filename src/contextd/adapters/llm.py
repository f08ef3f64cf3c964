"""A language model behind an endpoint with OpenAI's `/chat/completions`. Off unless it is configured."""

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

from contextd.adapters.circuit_breaker import CircuitBreaker
from contextd.adapters.token_ledger import TokenLedger
from contextd.domain.errors import LanguageModelUnavailable, Misconfigured
from contextd.domain.ports import TokenCounter

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

MAX_ANSWER_TOKENS: Final = 1_500
MAX_ANSWER_BYTES: Final = 256 * 1024
_CONNECT_S: Final = 2.0
_MOST_BELIEVABLE: Final = 1_000_000
"""Tokens of one answer: a larger figure is a mistake, and would end the day for nothing."""

_REMEDIES: Final = {
    401: "check CONTEXTD_LLM_API_KEY",
    403: "check CONTEXTD_LLM_API_KEY",
    404: "check CONTEXTD_LLM_BASE_URL and CONTEXTD_LLM_MODEL",
}


class _Failed(Exception):
    """No answer. `unwell` blames the server; `free` is sure that nothing was spent."""

    def __init__(
        self, reason: str, remedy: str | None = None, *, unwell: bool = True, free: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason, self.remedy, self.unwell, self.free = reason, remedy, unwell, free


class ChatModel:
    """One question, one try: whoever asks has an answer of its own if none comes."""

    def __init__(
        self,
        base_url: str,
        model: str,
        ledger: TokenLedger,
        tokens: TokenCounter,
        api_key: str | None = None,
        *,
        timeout_s: float = 20.0,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self._url = _endpoint(base_url)
        self._headers = _headers(api_key)
        self._model = model
        self._ledger = ledger
        self._tokens = tokens
        self._timeout_s = timeout_s
        self._breaker = breaker or CircuitBreaker(threshold=3, cooldown_s=30.0)
        self._client: AsyncClient | None = None
        self._closed = False

    @property
    def name(self) -> str:
        return self._model

    async def complete(self, instructions: str, question: str) -> str:
        """The model's text, whatever it is. Raises LanguageModelUnavailable."""
        if not self._breaker.admit():
            raise LanguageModelUnavailable("the language model failed lately and is left alone for a while")
        reserved = await asyncio.to_thread(self._reserve, instructions + question)
        try:
            answer = await self._ask(instructions, question)
            text = _text_of(answer)
        except _Failed as failure:
            self._breaker.failed() if failure.unwell else self._breaker.succeeded()
            if failure.free:
                await asyncio.to_thread(self._ledger.correct, reserved, 0)
            raise LanguageModelUnavailable(failure.reason, failure.remedy) from failure
        self._breaker.succeeded()
        await asyncio.to_thread(self._ledger.correct, reserved, _tokens_used(answer, reserved))
        return text

    async def close(self) -> None:
        self._closed = True
        if self._client is not None:
            await self._client.aclose()

    def _reserve(self, prompt: str) -> int:
        """The prompt as our own counter sees it, and the longest answer that may come."""
        tokens = self._tokens.count(prompt) + MAX_ANSWER_TOKENS
        self._ledger.reserve(tokens)
        return tokens

    async def _ask(self, instructions: str, question: str) -> Any:
        import httpx2

        body = {
            "model": self._model,
            "max_tokens": MAX_ANSWER_TOKENS,
            "messages": [
                {"role": "system", "content": instructions},
                {"role": "user", "content": question},
            ],
        }
        client = self._open_client()
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                client.stream("POST", self._url, content=json.dumps(body).encode()) as response,
            ):
                _check_status(response)
                return _json(await _read(response))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise _Failed("the language model cannot be reached", free=True) from error
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise _Failed("the language model took too long") from error
        except httpx2.RequestError as error:
            raise _Failed("the language model broke off") from error

    def _open_client(self) -> "AsyncClient":
        import httpx2

        if self._closed:
            raise _Failed("the language model is closed", unwell=False, free=True)
        if self._client is None:
            timeout = httpx2.Timeout(self._timeout_s, connect=min(_CONNECT_S, self._timeout_s))
            # The prompt goes to the address that was set and nowhere else: no proxy or login of the
            # environment, no redirect.
            self._client = httpx2.AsyncClient(
                headers=self._headers, timeout=timeout, trust_env=False, follow_redirects=False
            )
        return self._client


def _endpoint(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        usable = base_url.isprintable() and parts.scheme in ("http", "https") and bool(parts.hostname)
        usable = usable and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        # The value is not repeated: a URL may hold a password.
        raise Misconfigured(
            "CONTEXTD_LLM_BASE_URL is not a web address", "use the form http://localhost:11434/v1"
        )
    path = parts.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path += "/chat/completions"
    return urlunsplit(parts._replace(path=path, fragment=""))


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
        raise Misconfigured("CONTEXTD_LLM_API_KEY holds characters that no header can", "set the key again")
    return {**headers, "Authorization": f"Bearer {api_key}"}


def _check_status(response: "Response") -> None:
    status = response.status_code
    if status != 200:
        raise _Failed(
            f"the language model answered with status {status}",
            _REMEDIES.get(status),
            unwell=status == 429 or status >= 500,
            free=400 <= status < 500,
        )


async def _read(response: "Response") -> bytes:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _Failed("the language model answered in a compressed form that was not asked for")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise _Failed("the language model's answer is too large")
    return bytes(body)


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _Failed("the language model did not answer in JSON") from error


def _text_of(answer: Any) -> str:
    try:
        text = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError) as error:
        raise _Failed("the language model did not answer as a chat completion") from error
    if not isinstance(text, str):
        raise _Failed("the language model did not answer with text")
    return text


def _tokens_used(answer: Any, reserved: int) -> int:
    """As the endpoint bills it; what was reserved when it does not say, or says what cannot be."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if type(total) is int and 0 < total <= _MOST_BELIEVABLE else reserved
