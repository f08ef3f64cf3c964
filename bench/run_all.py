"""Every bench, one after another, and what they found as Markdown.

python bench/run_all.py                    print a full run
python bench/run_all.py --write            the same, and keep it as bench/RESULTS.md
python bench/run_all.py --small            a minute or two, to see that the benches work
python bench/run_all.py --only store call  some of them
"""

import argparse
import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import uvloop

import budget_cost
import call_cost
import checkpoint_speed
import command_cost
import knowledge_speed
import memory
import pipeline_cost
import proxy_cost
import report
import resume_cost
import sessions
import stdio_start
import store_speed
import window_shares
from sizes import FULL, SMALL, Sizes

_RESULTS: Final = Path(__file__).parent / "RESULTS.md"
_BENCHES: Final = (
    "call", "checkpoints", "knowledge", "sessions", "memory", "stdio", "pipeline", "budgets", "windows",
    "store", "commands",
)  # fmt: skip


def main() -> None:
    chosen = _arguments()
    sizes = _sizes(chosen)
    load_before = os.getloadavg()[0]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sections = runner.run(_run(sizes, chosen.only))
    is_full = sizes == FULL and tuple(chosen.only) == _BENCHES
    command = f"python bench/run_all.py {' '.join(sys.argv[1:])}".strip()
    page = report.results(sections, sizes, command, load_before, is_full=is_full)
    if chosen.write:
        _RESULTS.write_text(page, encoding="utf-8")
    else:
        print(page)


async def _run(sizes: Sizes, only: list[str]) -> list[report.Section]:
    sections: list[report.Section] = []
    call_us: float | None = None
    for bench in only:
        print(f"{bench} …", file=sys.stderr, flush=True)
        match bench:
            case "call":
                cost = await call_cost.measure(sizes)
                call_us = cost.call_us
                sections.append(cost.section)
            case "checkpoints":
                sections.append(await checkpoint_speed.measure(sizes))
            case "knowledge":
                sections.append(await knowledge_speed.measure(sizes))
            case "sessions":
                sections.append(await sessions.measure(sizes))
            case "memory":
                sections.append(await memory.measure())
            case "stdio":
                sections.append(stdio_start.measure(sizes))
            case "pipeline":
                sections.append(await pipeline_cost.measure(sizes, call_us))
            case "budgets":
                sections.append(await budget_cost.measure(sizes))
            case "windows":
                sections.append(await window_shares.measure())
                sections.append(await resume_cost.measure())
            case "store":
                sections.append(await store_speed.measure(sizes))
            case "commands":
                sections.append(await command_cost.measure(sizes))
                sections.append(proxy_cost.measure(sizes))
        print(sections[-1].markdown(), file=sys.stderr, flush=True)
    return sections


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure contextd.")
    parser.add_argument("--write", action="store_true", help="keep the results as bench/RESULTS.md")
    parser.add_argument("--small", action="store_true", help="little of everything")
    parser.add_argument("--only", nargs="+", choices=_BENCHES, default=list(_BENCHES), help="some benches")
    parser.add_argument("--size", type=int, help="checkpoints to load before saves and searches are timed")
    parser.add_argument("--seconds", type=int, help="how long the many sessions work")
    return parser.parse_args()


def _sizes(chosen: argparse.Namespace) -> Sizes:
    sizes = SMALL if chosen.small else FULL
    return replace(
        sizes, checkpoints=chosen.size or sizes.checkpoints, seconds=chosen.seconds or sizes.seconds
    )


if __name__ == "__main__":
    main()
