"""Plugins for tests: the example, and some that misbehave, each in a folder of its own."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contextd.adapters.tool_processes.installed import InstalledPlugins
from contextd.adapters.tool_processes.installing import fetched
from contextd.adapters.tool_processes.sources import Source
from contextd.domain.tool_processes import Installed, Manifest, OfferedTool
from contextd.settings import Settings
from contextd.wiring import build

EXAMPLE = Path(__file__).parent.parent / "examples" / "plugins" / "wordcount"

PROBE = """
import json, os, signal, socket
from contextd.plugin_kit import serving
from contextd.plugin_kit.serving import Failure, Tool, serve

TEXT = {"type": "string"}

def attempt(ask):
    '''Do something that the sandbox is there to prevent, and tell what came of it.'''
    what, value = ask["what"], ask["value"]
    try:
        if what == "read":
            return {"came": open(value).read()}
        if what == "write":
            open(value, "w").write("x")
        if what == "connect":
            socket.create_connection(("127.0.0.1", int(value)), timeout=2).close()
        if what == "variable":
            return {"came": os.environ[value]}
        if what == "list":
            return {"came": " ".join(os.listdir(value))}
    except (OSError, KeyError) as error:
        raise Failure(type(error).__name__)
    return {"came": "done"}

def end(ask):
    '''End in the middle of the call.'''
    os._exit(ask["code"])

def stop(ask):
    '''Stand still, all of it.'''
    os.kill(os.getpid(), signal.SIGSTOP)
    return {}

def say(ask):
    '''Answer with the text, whatever was promised.'''
    if ask["how"] == "failure":
        raise Failure(ask["text"])
    if ask["how"] == "error":
        raise ValueError(ask["text"])
    if ask["how"] == "flood":
        for _ in range(10_000):
            print(ask["text"] * 1_000, flush=True)
    return {"text": int(ask["text"]) if ask["how"] == "number" else ask["text"]}

def odd(ask):
    '''Answer with something that is hard to pass on.'''
    deep = []
    for _ in range(200):
        deep = [deep]
    if ask["how"] in RAW:
        serving.json = Raw
        Raw.answer = RAW[ask["how"]]
    return {"deep": {"a": deep}, "infinite": {"a": float("inf")}, "a list": [1]}.get(ask["how"], {})

RAW = {"half a character": '{"a": "' + chr(92) + 'ud800"}', "half an object": '{"a"'}

class Raw:
    loads = staticmethod(json.loads)
    dumps = staticmethod(lambda answer, **_: Raw.answer)

HOW = {"type": "string", "enum": ["answer", "failure", "error", "flood", "number"]}
serve(
    Tool(attempt, input={"what": TEXT, "value": TEXT}, output={"came": TEXT}),
    Tool(end, input={"code": {"type": "integer"}}),
    Tool(stop, input={}),
    Tool(odd, input={"how": TEXT}),
    Tool(say, input={"text": TEXT, "how": HOW}, output={"text": TEXT}),
)
"""


def write_plugin(folder: Path, script: str = PROBE, name: str = "probe", **more: Any) -> Path:
    """`more` goes into plugin.toml: texts and lists of texts."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {"name": name, "version": "1.0", "command": ["{python}", "main.py"], **more}
    toml = "".join(f"{key} = {json.dumps(value)}\n" for key, value in rows.items())
    (folder / "plugin.toml").write_text(toml)
    (folder / "main.py").write_text(script)
    return folder


async def install(data_dir: Path, folder: Path) -> Installed:
    """As `contextd plugin install FOLDER --yes`."""
    sandbox = build(Settings(data_dir=data_dir)).sandbox
    plugins = InstalledPlugins(data_dir)
    try:
        async with fetched(plugins, sandbox, Source(str(folder))) as found:
            plugins.take_in(found)
    finally:
        await sandbox.close()
    return plugins[found.manifest.name]


def as_if_installed(folder: Path, script: str) -> Installed:
    """One that would never have been: nobody asked it what it offers."""
    write_plugin(folder, script)
    manifest = Manifest("probe", "1.0", (sys.executable, "main.py"), readable=(sys.prefix, sys.base_prefix))
    tool = OfferedTool("any", "Anything.", {"type": "object"}, None, 30.0, False)
    return Installed(manifest, (tool,), os.path.realpath(folder), "a test")


def pids_in(folder: str) -> Sequence[int]:
    """Processes that were started in this folder: those of a plugin."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str((entry / "cwd").readlink()) == folder:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def beneath(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))
