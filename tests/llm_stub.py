"""A chat endpoint on loopback that answers as it is told: well, slowly, wrongly or with malice."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WAIT = 10.0


@dataclass(frozen=True)
class Reply:
    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Answer = Callable[[dict[str, Any]], Reply | None]
"""From the question to the reply; None says nothing until the stub is closed."""


class LlmStub:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.questions: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self._closing = threading.Event()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stub.questions.append(question)
                stub.keys.append(self.headers.get("Authorization"))
                reply = stub.answer(question)
                if reply is None:
                    stub._closing.wait(WAIT)
                    return
                self.send_response(reply.status)
                for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(ConnectionError):
                    self.wfile.write(reply.body)

            def log_message(self, format: str, *args: object) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join(WAIT)
        self._server.server_close()


@contextmanager
def serving(answer: Answer) -> Iterator[LlmStub]:
    stub = LlmStub(answer)
    try:
        yield stub
    finally:
        stub.close()


def said(content: object, tokens: int | None = None) -> Reply:
    """A chat completion that holds this: text as it is, anything else as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    answer: dict[str, Any] = {"choices": [{"message": {"role": "assistant", "content": text}}]}
    if tokens is not None:
        answer["usage"] = {"total_tokens": tokens}
    return Reply(json.dumps(answer).encode())


def always(reply: Reply | None) -> Answer:
    return lambda question: reply


def hypothesis(description: str, probability: float = 0.9, **more: Any) -> dict[str, Any]:
    return {"description": description, "probability": probability, **more}


def opinion(*hypotheses: dict[str, Any], tokens: int | None = None) -> Reply:
    return said({"hypotheses": list(hypotheses)}, tokens)
