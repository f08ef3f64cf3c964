"""What the daemon holds while nobody calls it."""

import asyncio
from typing import Final

from processes import Server, contextd, data_folder
from prose import checkpoints
from report import Check, Section, Table
from wire import Client

_MOST_MB: Final = 200
_SETTLE_S: Final = 3
_KINDS: Final = ("VmRSS", "RssAnon", "RssFile")


async def measure() -> Section:
    rows: list[tuple[str, ...]] = []
    with data_folder() as folder, contextd(folder) as daemon:
        await asyncio.sleep(_SETTLE_S)
        rows.append(("started", *_shown(daemon)))
        client = await Client.connect(daemon.url)
        await client.call("status")
        rows.append(("after `status`: the token counter is loaded", *_shown(daemon)))
        (made,) = checkpoints(1)
        await client.call(
            "checkpoint_save",
            summary=made.summary,
            description=made.description,
            project_path="/srv/bench/one",
        )
        await client.call("checkpoint_search", query=made.summary)
        await asyncio.sleep(_SETTLE_S)
        rows.append(("after a save and a search: the model is loaded", *_shown(daemon)))
        idle = daemon.memory_mb()
        await client.close()
    return Section(
        "Memory at rest",
        f"Resident memory of the daemon's process in MB, {_SETTLE_S} s after the last call.",
        (Table(("", "RSS", "of it anonymous", "of it files"), tuple(rows)),),
        (
            Check(
                "idle RSS with the model loaded", f"under {_MOST_MB} MB", f"{idle:.0f} MB", idle < _MOST_MB
            ),
        ),
    )


def _shown(daemon: Server) -> tuple[str, ...]:
    return tuple(f"{daemon.memory_mb(kind):.0f}" for kind in _KINDS)
