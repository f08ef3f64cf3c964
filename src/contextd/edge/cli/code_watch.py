"""An index that follows its files while somebody looks on: `contextd watch`."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final

import click

from contextd.adapters.watcher import FolderWatcher
from contextd.domain.callers import Caller
from contextd.domain.code_store import BlobKey, Tree
from contextd.domain.errors import BadPath, Fault, IndexingInProgress, NotIndexed
from contextd.edge.cli.code_calls import called
from contextd.edge.cli.code_output import change_line, complain, files_lines, indexed_lines
from contextd.edge.cli.terminal import ProgressLine, json_text, visible
from contextd.services.code_index import Choice
from contextd.services.indexed_trees import Indexed, indexed_at
from contextd.wiring import House, open_house

_ASK_AGAIN_S: Final = 0.5


class Watch:
    def __init__(self, house: House, as_json: bool) -> None:
        self._house = house
        self._as_json = as_json
        self.listens = False

    async def run(self, path: str) -> None:
        """Until it is cancelled. Raises Fault when there is nothing to follow (any more)."""
        async with open_house(self._house, follows=False):
            await self._bring_up(path)
            indexed = await self._indexed(path)
            held = await self._held(indexed)
            async with aclosing(_bursts(indexed.root)) as bursts:
                async for _ in bursts:
                    self._announce(indexed.root)
                    started = self._house.clock.monotonic()
                    version, indexed = indexed.versions, await self._followed(indexed)
                    took = self._house.clock.monotonic() - started
                    if indexed.versions != version:
                        before, held = held, await self._held(indexed)
                        self._tell_change(before, held, took)
                    # Who writes without end, such as a build, costs half of a core at the most.
                    await asyncio.sleep(took)

    async def _bring_up(self, path: str) -> None:
        for tool, arguments in await self._runs(path):
            started = self._house.clock.monotonic()
            with ProgressLine() as line:
                answer = await called(self._house, tool, arguments, line.tell)
            took = self._house.clock.monotonic() - started
            if self._as_json:
                self._print("indexed", **answer)
                continue
            for text in files_lines(answer, took) if tool == "index_repository" else indexed_lines(answer):
                click.echo(text)

    async def _runs(self, path: str) -> list[tuple[str, dict[str, Any]]]:
        """The calls that bring up what is indexed there, as it was chosen; or what makes it indexed."""
        try:
            indexed = await self._indexed(path)
        except NotIndexed:
            return [("index_codebase", {"path": path})]
        return [_again(tree) for tree in indexed.trees]

    async def _indexed(self, path: str) -> Indexed:
        """Asked for each time: others may index this project in another way meanwhile."""
        return await indexed_at(self._house.code.store, path, Caller(transport="cli"))

    async def _held(self, indexed: Indexed) -> dict[str, BlobKey]:
        """What the index has, by path: two of these tell a change, whoever brought it in."""
        held: dict[str, BlobKey] = {}
        for tree in indexed.trees:
            files = await self._house.code.store.files(indexed.project, tree.id)
            held |= {path: known.blob for path, known in files.items() if known.blob is not None}
        return held

    async def _followed(self, indexed: Indexed) -> Indexed:
        try:
            now = await self._indexed(indexed.root)
            for tree in now.trees:
                await self._follow(now, tree)
            return await self._indexed(indexed.root)
        except (BadPath, NotIndexed):
            # The folder is gone, or its index.
            raise
        except Fault as fault:
            complain(fault, as_json=False)
            return indexed

    async def _follow(self, indexed: Indexed, tree: Tree) -> None:
        while True:
            try:
                await self._house.code.index.follow(tree, indexed.project)
            except IndexingInProgress:
                await asyncio.sleep(_ASK_AGAIN_S)
            else:
                return

    def _announce(self, root: str) -> None:
        if self.listens:
            return
        self.listens = True
        if self._as_json:
            self._print("watching", path=root)
        else:
            click.echo(f"watching {click.style(visible(root), bold=True)}; Ctrl-C ends it")

    def _tell_change(
        self, before: Mapping[str, BlobKey], after: Mapping[str, BlobKey], took: float
    ) -> None:
        changed = sorted(path for path, blob in after.items() if before.get(path) != blob)
        removed = sorted(before.keys() - after.keys())
        if not changed and not removed:
            return
        now, took_ms = self._house.clock.now(), round(took * 1000, 1)
        if self._as_json:
            self._print(
                "changed", at=now.isoformat(), changed=changed, removed=removed, duration_ms=took_ms
            )
        else:
            click.echo(change_line(f"{now.astimezone():%H:%M:%S}", changed, removed, took_ms))

    def _print(self, event: str, **about: Any) -> None:
        click.echo(json_text({"event": event, **about}))


def _again(tree: Tree) -> tuple[str, dict[str, Any]]:
    choice = Choice.of(tree)
    if tree.purpose == "code":
        of_code = {"include_tests": choice.include_tests, "include_vendor": choice.include_vendor}
        return "index_codebase", {"path": tree.path, **of_code}
    of_files = {"include_patterns": list(choice.include), "exclude_patterns": list(choice.exclude)}
    return "index_repository", {"path": tree.path, **of_files, "max_file_size": choice.max_file_size}


async def _bursts(folder: str) -> AsyncGenerator[None, None]:
    """One item as soon as it listens, for what changed before; then one for each burst of changes."""
    changes = FolderWatcher().changes(folder)
    coming = asyncio.ensure_future(anext(changes))
    try:
        # Its first step is to listen, and it has no other way to say so.
        await asyncio.sleep(0)
        if coming.done():
            await coming
        yield
        while True:
            await coming
            coming = asyncio.ensure_future(anext(changes))
            yield
    except OSError as error:
        raise click.ClickException(f"the folder cannot be watched ({error.strerror or error})") from error
    finally:
        coming.cancel()
