"""Changes below a folder, as the system tells them."""

from collections.abc import AsyncIterator
from typing import Final

_DEBOUNCE_MS: Final = 400
_STEP_MS: Final = 50


class FolderWatcher:
    """Bursts of changes become one. What is under .git and in caches does not count."""

    async def changes(self, folder: str) -> AsyncIterator[None]:
        from watchfiles import DefaultFilter, awatch

        async for _ in awatch(
            folder,
            watch_filter=DefaultFilter(),
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            ignore_permission_denied=True,
        ):
            yield
