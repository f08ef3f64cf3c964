"""What every test may ask for."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contextd.edge.call_pipeline import CallPipeline, pipeline_of
from contextd.settings import RateLimit, Settings
from contextd.wiring import House, build, open_house
from running import Daemon, running_daemon


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for a module's tests, without rate limits: those have tests of their own."""
    with running_daemon(tmp_path_factory.mktemp("data"), CONTEXTD_RATE_LIMIT="off") as started:
        yield started


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A house of the test's own, in this process."""
    settings = Settings(data_dir=tmp_path, rate_limit=RateLimit(on=False))
    async with open_house(build(settings)) as opened:
        yield opened


@pytest.fixture
def pipeline(house: House) -> CallPipeline:
    return pipeline_of(house)
