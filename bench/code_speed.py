"""How quickly code is indexed and searched, on source files that the script is pointed at.

python bench/code_speed.py PATH                     100,000 lines, and growth to what PATH holds
python bench/code_speed.py PATH --lines 100000 1000000
python bench/code_speed.py PATH --closer            search once all chunks are read closer, minutes later

PATH is a folder of Go source. For each number of lines a folder is filled with so many of its files,
indexed by a daemon of its own over MCP, and searched. Memory is the daemon's and its worker processes'
together, at its peak, sampled ten times a second.
"""

import argparse
import asyncio
import os
import random
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvloop

from code_questions import question_of
from contextd.adapters.tree_sitter import TreeSitterParser
from contextd.languages import Languages
from figures import Latency, ms
from processes import Server, contextd, data_folder
from report import Table
from wire import Client

_GENERATED: Final = re.compile(r"^// Code generated .* DO NOT EDIT\.$", re.MULTILINE)
_CALLS: Final = 200
_WARM_UP: Final = 10
_CHANGED: Final = 10
_LOOK_S: Final = 30


@dataclass(frozen=True, slots=True)
class Indexed:
    lines: int
    files: int
    chunks: int
    first_s: float
    again_s: float
    changed_s: float
    peak_mb: float
    size_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the code index.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--lines", type=int, nargs="+", default=[100_000])
    parser.add_argument("--closer", action="store_true", help="wait until all chunks are read closer")
    chosen = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_measure(chosen.path, chosen.lines, closer=chosen.closer))


async def _measure(source: Path, sizes: Sequence[int], *, closer: bool) -> None:
    indexed: list[Indexed] = []
    searched: list[tuple[str, ...]] = []
    for lines in sizes:
        print(f"{lines} lines …", file=sys.stderr, flush=True)
        with data_folder() as folder:
            project = folder / "project"
            taken = _fill(source, project, lines)
            with contextd(folder / "data") as daemon:
                client = await Client.connect(daemon.url)
                one = await _index(client, daemon, project, taken)
                indexed.append(one)
                if closer:
                    await _read_closer(daemon, project)
                    await client.close()
                    client = await Client.connect(daemon.url)
                searched += [
                    (f"{one.chunks}", mode, kind, *(ms(value) for value in (each.p50, each.p95, each.p99)))
                    for mode, kind, each in await _search(client, project)
                ]
                await client.close()
    print(_index_table(indexed).markdown())
    columns = ("chunks", "mode", "query", "p50 ms", "p95 ms", "p99 ms")
    print(Table(columns, tuple(searched)).markdown())


def _fill(source: Path, project: Path, lines: int) -> int:
    """Copy files, in the order of a seed, until there are so many lines. Generated ones are not counted."""
    files = sorted(path for path in source.rglob("*.go") if path.is_file())
    random.Random(1).shuffle(files)
    taken = 0
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        if taken >= lines:
            break
        if _GENERATED.search(text[:4096]):
            continue
        target = project / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        taken += text.count("\n")
    return taken


async def _index(client: Client, daemon: Server, project: Path, lines: int) -> Indexed:
    await client.call("status")
    peak = asyncio.create_task(_peak(daemon.pid))
    first_s, first = await _timed(client, "index_codebase", path=str(project))
    peak.cancel()
    # A file that was just written is looked into once more; after that it is known by its stat.
    await asyncio.sleep(2.1)
    await client.call("index_codebase", path=str(project))
    again_s, _ = await _timed(client, "index_codebase", path=str(project))
    _edit(project)
    changed_s, _ = await _timed(client, "index_codebase", path=str(project))
    figures = first["statistics"]
    return Indexed(
        lines=lines,
        files=figures["files_indexed"],
        chunks=figures["chunks_created"],
        first_s=first_s,
        again_s=again_s,
        changed_s=changed_s,
        peak_mb=_PEAKS[daemon.pid],
        size_mb=figures["index_size_mb"],
    )


async def _read_closer(daemon: Server, project: Path) -> None:
    """The daemon reads when nobody asks for anything, so it is seldom asked how far it is."""
    while True:
        client = await Client.connect(daemon.url)
        figures = (await client.call("get_status", path=str(project)))["statistics"]
        await client.close()
        if figures["chunks_read_closer"] == figures["total_chunks"]:
            return
        print(f"  {figures['chunks_read_closer']} chunks read closer", file=sys.stderr, flush=True)
        await asyncio.sleep(_LOOK_S)


def _edit(project: Path) -> None:
    for path in sorted(project.rglob("*.go"))[: _CHANGED * 7 : 7]:
        path.write_text(path.read_text(errors="replace") + "\nfunc addedByTheBench() int { return 1 }\n")


_PEAKS: Final[dict[int, float]] = {}


async def _peak(pid: int) -> None:
    while True:
        _PEAKS[pid] = max(_PEAKS.get(pid, 0.0), sum(_rss_mb(each) for each in (pid, *_children(pid))))
        await asyncio.sleep(0.1)


def _children(pid: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                yield int(entry.name)


def _rss_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def _search(client: Client, project: Path) -> list[tuple[str, str, Latency]]:
    sentences, names = _queries(project)
    found = []
    for mode in ("hybrid", "keyword", "vector"):
        for kind, queries in (("words", sentences), ("name", names)):
            took = []
            for query in queries:
                seconds, _ = await _timed(
                    client, "search_code", path=str(project), query=query, search_mode=mode
                )
                took.append(seconds)
            found.append((mode, kind, Latency.of(took[_WARM_UP:])))
    return found


def _queries(project: Path) -> tuple[list[str], list[str]]:
    """Sentences of doc comments, and names, each asked for once."""
    parser = TreeSitterParser(Languages().by_name)
    sentences: dict[str, None] = {}
    names: dict[str, None] = {}
    for path in sorted(project.rglob("*.go")):
        for symbol in parser.outline("go", path.read_text(errors="replace")).symbols:
            if symbol.kind in ("function", "method") and (sentence := question_of(symbol.doc, symbol.name)):
                sentences[sentence] = None
                names[symbol.name] = None
        if len(sentences) > 4 * _CALLS:
            break
    chance = random.Random(2)
    count = _CALLS + _WARM_UP
    return chance.sample(list(sentences), min(count, len(sentences))), chance.sample(
        list(names), min(count, len(names))
    )


async def _timed(client: Client, tool: str, **arguments: Any) -> tuple[float, dict[str, Any]]:
    started = time.perf_counter()
    answer = await client.call(tool, **arguments)
    return time.perf_counter() - started, answer


def _index_table(indexed: Sequence[Indexed]) -> Table:
    columns = (
        "lines",
        "files",
        "chunks",
        "first index s",
        "s a 100,000 lines",
        "no change s",
        f"{_CHANGED} files changed s",
        "peak MB",
        "index MB",
    )
    rows = [
        (
            f"{one.lines:,}",
            f"{one.files:,}",
            f"{one.chunks:,}",
            f"{one.first_s:.2f}",
            f"{one.first_s * 100_000 / one.lines:.2f}",
            f"{one.again_s:.3f}",
            f"{one.changed_s:.3f}",
            f"{one.peak_mb:.0f}",
            f"{one.size_mb:.0f}",
        )
        for one in indexed
    ]
    return Table(columns, tuple(rows))


if __name__ == "__main__":
    main()
