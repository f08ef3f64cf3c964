"""`safe_bash --command ls`: one program for all tools, which knows by its name which one it is."""

from __future__ import annotations

import json
import os
import sys

from contextd.proxy.flags import Usage, arguments_of, parse_document, usage, with_project
from contextd.proxy.http2 import Broken, Connection, Reply
from contextd.proxy.messages import (
    Answer,
    Fault,
    execute_request,
    read_reply,
    read_schema,
    schema_request,
)
from contextd.proxy.place import Place, Unreachable, find_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Schema = dict[str, Any]

_OWN_NAMES = ("contextd-proxy", "__main__.py")
_STDIN_S = 0.2
"""For tools that can be called without a word: how long one is waited for."""
_METADATA = {"user-agent": "contextd-proxy", "contextd-inline-faults": "1"}
_SERVICE = "/contextd.v1.ToolService"


def main(data_dir: str | None = None, address: str | None = None, python: str = "") -> NoReturn:
    """Exits 0 with the answer, 1 when the tool failed, 2 for what could not be understood."""
    try:
        status = _run(sys.argv, data_dir, address, python)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


def _run(argv: list[str], data_dir: str | None, address: str | None, python: str) -> int:
    tool, words = os.path.basename(argv[0]), argv[1:]
    beside = f"{os.path.dirname(argv[0])}/schema.json"
    if tool in _OWN_NAMES:
        if not words or words[0] in ("-h", "--help"):
            print("contextd-proxy TOOL [--FIELD VALUE]...", file=sys.stderr)
            return 0 if words else 2
        tool, words, beside = words[0], words[1:], ""
    as_text = "--text" in words
    words = [word for word in words if word != "--text"]
    try:
        return _call(Caller(find_place(data_dir, address), python), tool, words, beside, as_text)
    except Usage as error:
        print(f"{tool}: {error}", file=sys.stderr)
        return 2
    except Fault as fault:
        print(fault.message, file=sys.stderr)
        print(fault.body)
        return 2 if fault.category == "validation" else 1
    except (Unreachable, Broken, OSError) as error:
        print(f"{tool}: {error}", file=sys.stderr)
        return 1


def _call(caller: Caller, tool: str, words: list[str], beside: str, as_text: bool) -> int:
    document = _document(beside) or caller.schema(tool)
    if words and words[0] in ("-h", "--help"):
        print(usage(tool, document))
        return 0
    schema = document["input"]
    arguments = _stdin(schema) if words in ([], ["-"]) and _reads_stdin(words, schema) else None
    if arguments is None:
        arguments = arguments_of(words, schema)
    arguments = with_project(arguments, schema, os.getcwd())
    answer = caller.execute(tool, json.dumps(arguments).encode())
    if as_text:
        _print_text(answer)
    else:
        print(answer.envelope())
    return 0


class Caller:
    """One connection, made when it is needed."""

    def __init__(self, place: Place, python: str) -> None:
        self._place = place
        self._python = python
        self._connection: Connection | None = None

    def schema(self, tool: str) -> Schema:
        return read_schema(self._asked("GetSchema", schema_request(tool)))

    def execute(self, tool: str, arguments: bytes) -> Answer:
        return read_reply(self._asked("Execute", execute_request(tool, arguments)))

    def _asked(self, method: str, message: bytes) -> bytes:
        if self._connection is None:
            self._connection = Connection(self._socket())
        reply = self._connection.call(f"{_SERVICE}/{method}", message, _METADATA)
        if reply.messages and reply.trailers.get("grpc-status", "0") == "0":
            return reply.messages[0]
        raise _refusal(reply)

    def _socket(self) -> Any:
        """What starts a daemon is loaded only when there is none."""
        try:
            return self._place.connect()
        except (ConnectionError, FileNotFoundError):
            from contextd.proxy.starting import connected

            return connected(self._place, self._python)


def _refusal(reply: Reply) -> Fault:
    """A status of gRPC itself: the call never came as far as a tool."""
    message = reply.trailers.get("grpc-message") or "the daemon refused the call"
    if "%" in message:
        from urllib.parse import unquote

        message = unquote(message)
    status = reply.trailers.get("grpc-status", "")
    category = {"3": "validation", "5": "not_found", "16": "unauthorized"}.get(status, "unavailable")
    return Fault(category, f"GRPC_{status or 'none'}", message)


def _document(path: str) -> Schema | None:
    if not path:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            document: Schema = json.load(file)
            return document
    except (OSError, ValueError):
        return None


def _reads_stdin(words: list[str], schema: Schema) -> bool:
    """With `-` always; without a word when something is there to read, or something is required."""
    if words == ["-"]:
        return True
    if sys.stdin is None or sys.stdin.isatty():
        return False
    needed = [name for name in schema.get("required", ()) if name not in ("project_path", "path")]
    if needed:
        return True
    from select import select

    return bool(select([sys.stdin], [], [], _STDIN_S)[0])


def _stdin(schema: Schema) -> Schema | None:
    """None when nothing was there and nothing is required: so flags and their messages apply."""
    text = sys.stdin.read()
    return parse_document(text) if text.strip() else None


def _print_text(answer: Answer) -> None:
    """What a person reads: the output or the content, else the data; what is missing is told beside it."""
    data = json.loads(answer.data)
    if "stdout" in data:
        sys.stdout.write(data["stdout"])
        sys.stderr.write(data.get("stderr", ""))
    elif isinstance(data.get("content"), str):
        print(data["content"])
    else:
        print(json.dumps(data, ensure_ascii=False, indent=2))
    if answer.truncated:
        print(f"truncated; more under {', '.join(answer.refs)}", file=sys.stderr)


if __name__ == "__main__":
    main()
