"""What every test may ask for."""

from collections.abc import Iterator

import pytest

from running import Daemon, running_daemon


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for a module's tests, without rate limits: those have tests of their own."""
    with running_daemon(tmp_path_factory.mktemp("data"), CONTEXTD_RATE_LIMIT="off") as started:
        yield started
