"""A language model that says what the test wrote down, for clients that speak to Anthropic's API."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ScriptedModel:
    """Calls one tool, then ends. `results` is what the client answered to the call."""

    tool: str
    arguments: dict[str, Any]
    url: str = ""
    results: list[dict[str, Any]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        blocks = [
            block
            for message in request.get("messages", [])
            if isinstance(message.get("content"), list)
            for block in message["content"]
        ]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        offered = {tool.get("name") for tool in request.get("tools") or []}
        self.seen.append(json.dumps(request))
        if results:
            self.results = results
        elif self.tool in offered:
            return {"type": "tool_use", "id": "toolu_1", "name": self.tool, "input": self.arguments}
        return {"type": "text", "text": "done"}


def _events(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    calls = block["type"] == "tool_use"
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": message}
    empty = {**block, "input": {}} if calls else {"type": "text", "text": ""}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    delta = (
        {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        if calls
        else {"type": "text_delta", "text": block["text"]}
    )
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if calls else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 1},
    }
    yield {"type": "message_stop"}


@contextmanager
def scripted_model(tool: str, **arguments: Any) -> Iterator[ScriptedModel]:
    model = ScriptedModel(tool, arguments)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
                self._send("application/json", json.dumps({"input_tokens": 1}))
                return
            block = model.reply(asked)
            if asked.get("stream"):
                lines = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in _events(block)]
                self._send("text/event-stream", "".join(lines))
                return
            first = next(_events(block))["message"]
            reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
            self._send("application/json", json.dumps({**first, "content": [block], "stop_reason": reason}))

        def do_GET(self) -> None:
            self._send("application/json", "{}")

        def _send(self, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join(timeout=10)
