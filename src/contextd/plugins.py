"""Extension points. What ships with contextd stands in the same table as what a plugin adds.

A plugin is a module with `def extend(extensions: Extensions) -> None`. It is found by the entry
point group `contextd.plugins`, or named in CONTEXTD_PLUGINS. Its code runs as contextd itself:
install only what you would run.
"""

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from contextd.adapters.sqlite import SqliteStore
from contextd.adapters.tool_processes.installed import InstalledPlugins
from contextd.domain.errors import Misconfigured, NotInstallable
from contextd.domain.ports import Embedder, Store
from contextd.domain.tool_processes import Installed
from contextd.languages.language import Language
from contextd.scrubbing.rules import RULES, Rule
from contextd.services.patterns import Pattern
from contextd.settings import Settings
from contextd.tools import (
    analytics,
    checkpoints,
    code_index,
    code_search,
    code_status,
    collections,
    discovery,
    folding,
    memories,
    references,
    remediations,
    safe_commands,
    safe_files,
    skills,
    status,
    symbols,
    troubleshooting,
)
from contextd.tools.declaration import AnyTool
from contextd.tools.tool_processes import tools_of

logger = logging.getLogger(__name__)

GROUP: Final = "contextd.plugins"

StoreFactory = Callable[[str, Settings], Store]
"""From the store's URL and the settings."""
EmbedderFactory = Callable[[Settings], Embedder]


@dataclass
class Extensions:
    """What the house is furnished with. Stores go by the scheme of CONTEXTD_STORE."""

    tools: list[AnyTool] = field(default_factory=list)
    services: dict[type, object] = field(default_factory=dict)
    stores: dict[str, StoreFactory] = field(default_factory=dict)
    embedders: dict[str, EmbedderFactory] = field(default_factory=dict)
    scrub_rules: list[Rule] = field(default_factory=list)
    patterns: list[Pattern] = field(default_factory=list)
    languages: list[Language] = field(default_factory=list)
    processes: list[Installed] = field(default_factory=list)
    """Plugins whose tools are processes of their own."""


def load_extensions(modules: tuple[str, ...] = (), data_dir: Path | None = None) -> Extensions:
    """The built-in ones, then the installed plugins, then those named. Raises Misconfigured.

    With `data_dir`, the tool processes that are installed there come last.
    """
    extensions = _built_in()
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        entry.load()(extensions)
    for name in modules:
        try:
            extend = importlib.import_module(name).extend
        except (ImportError, AttributeError) as error:
            raise Misconfigured(
                f"the plugin {name} does not load ({error})", "mend or remove it from CONTEXTD_PLUGINS"
            ) from error
        extend(extensions)
    for installed in InstalledPlugins(data_dir) if data_dir else ():
        _add_process(extensions, installed)
    return extensions


def _add_process(extensions: Extensions, installed: Installed) -> None:
    """One that does not fit is left out, and the log says so: it must not keep the daemon from starting."""
    try:
        tools = fitting_tools(installed, extensions)
    except NotInstallable as fault:
        logger.warning("the plugin %s is left out: %s", installed.manifest.name, fault.problem)
        return
    extensions.tools += tools
    extensions.processes.append(installed)


def fitting_tools(installed: Installed, extensions: Extensions) -> list[AnyTool]:
    """Its tools, which neither have the name of another nor could be taken for one of contextd's.

    Raises NotInstallable.
    """
    families = {tool.name.partition("_")[0] for tool in extensions.tools if tool.toolset != "plugins"}
    if installed.manifest.name in families:
        raise NotInstallable(
            f"tools of a plugin named {installed.manifest.name} would pass for contextd's own",
            "give the plugin another name",
        )
    return tools_of(installed)


def _built_in() -> Extensions:
    return Extensions(
        tools=[
            *analytics.TOOLS,
            *checkpoints.TOOLS,
            *code_index.TOOLS,
            *code_search.TOOLS,
            *code_status.TOOLS,
            *symbols.TOOLS,
            *collections.TOOLS,
            *discovery.TOOLS,
            *folding.TOOLS,
            *memories.TOOLS,
            *references.TOOLS,
            *remediations.TOOLS,
            *safe_commands.TOOLS,
            *safe_files.TOOLS,
            *skills.TOOLS,
            *status.TOOLS,
            *troubleshooting.TOOLS,
        ],
        stores={"sqlite": _sqlite, "qdrant": _qdrant},
        embedders={"minilm": _minilm, "remote": _remote},
        scrub_rules=list(RULES),
    )


def _sqlite(url: str, settings: Settings) -> Store:
    return SqliteStore(settings.data_dir)


def _qdrant(url: str, settings: Settings) -> Store:
    from contextd.adapters.qdrant import QdrantStore

    address = settings.qdrant_uri or url.removeprefix("qdrant:")
    return QdrantStore(address, api_key=settings.qdrant_api_key)


def _minilm(settings: Settings) -> Embedder:
    from contextd.adapters.minilm import MiniLM

    return MiniLM(threads=settings.embedding_threads)


def _remote(settings: Settings) -> Embedder:
    from contextd.adapters.remote_embedder import RemoteEmbedder

    assert settings.embedding_base_url is not None
    if not settings.embedding_model:
        raise Misconfigured(
            "EMBEDDING_BASE_URL is set and EMBEDDING_MODEL is not",
            "set EMBEDDING_MODEL to the model's name",
        )
    return RemoteEmbedder(
        settings.embedding_base_url, settings.embedding_model, api_key=settings.embedding_api_key
    )
