"""Settings into a house that stands. The only place that builds adapters."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from contextd import __version__
from contextd.adapters.audit_log import FileAuditLog
from contextd.adapters.certificates import CertificateAuthority
from contextd.adapters.clock import SystemClock
from contextd.adapters.index_locks import FileIndexLocks
from contextd.adapters.project_files import LocalProjectFiles
from contextd.adapters.sandbox import Ladder, PolicyFile
from contextd.adapters.secret_key import kept_key
from contextd.adapters.source_reader import LocalSourceReader
from contextd.adapters.sqlite import SqliteCodeStore, SqliteEventLog, SqliteOutcomeLog
from contextd.adapters.telemetry import ObservedTelemetry, make_telemetry
from contextd.adapters.token_vault import TokenFile
from contextd.adapters.tokens import O200kCounter
from contextd.adapters.tool_processes import SandboxedToolHost
from contextd.adapters.watcher import FolderWatcher
from contextd.domain.auditing import AuditLog
from contextd.domain.errors import Misconfigured
from contextd.domain.limits import Allowance
from contextd.domain.ports import (
    Clock,
    LanguageModel,
    Scrubber,
    Store,
    Telemetry,
    TokenCounter,
    TokenVault,
)
from contextd.domain.project_files import ProjectFiles
from contextd.domain.records import Content
from contextd.domain.sandboxing import Policies, Sandbox
from contextd.domain.tool_processes import ToolHost
from contextd.plugins import Extensions, load_extensions
from contextd.scrubbing.gitleaks_rules import chosen_rules
from contextd.scrubbing.scrubber import SecretScrubber
from contextd.services.analytics import Analytics, Rates
from contextd.services.answering import Answering
from contextd.services.archive import Archive
from contextd.services.branch_memories import BranchMemories
from contextd.services.checkpoints import Checkpoints
from contextd.services.closer_reading import CloserReader
from contextd.services.code_index import CodeIndex
from contextd.services.code_search import CodeSearch
from contextd.services.code_status import CodeStatuses
from contextd.services.collections import Collections
from contextd.services.embedding import Embeddings
from contextd.services.file_finding import FileFinding
from contextd.services.folding import Folding
from contextd.services.health import Health
from contextd.services.known_fixes import KnownFixes
from contextd.services.memories import Memories
from contextd.services.pattern_library import PatternLibrary
from contextd.services.patterns import PatternPack
from contextd.services.project_secrets import ProjectSecrets
from contextd.services.ref_reading import RefReading
from contextd.services.references import References
from contextd.services.remediations import Remediations
from contextd.services.safe_commands import SafeCommands
from contextd.services.safe_files import SafeFiles
from contextd.services.safe_writing import SafeWriting
from contextd.services.second_opinion import SecondOpinion
from contextd.services.shown_secrets import ShownSecrets
from contextd.services.skills import Skills
from contextd.services.symbols import Symbols
from contextd.services.tool_finding import ToolFinding
from contextd.services.tool_processes import ToolProcesses
from contextd.services.troubleshooting import Troubleshooting
from contextd.services.used_trees import UsedTrees
from contextd.services.watching import Watching
from contextd.settings import Settings, environment, passed_on
from contextd.tools.discovery import findable
from contextd.tools.registry import Registry

CONTENTS: Final[tuple[Content, ...]] = ("text", "code")


@dataclass(frozen=True)
class CodeRoom:
    """Everything about code: one index, and what keeps it fresh."""

    store: SqliteCodeStore
    reader: LocalSourceReader
    index: CodeIndex
    search: CodeSearch
    statuses: CodeStatuses
    symbols: Symbols
    watching: Watching
    closer: CloserReader


@dataclass(frozen=True)
class House:
    """Everything that a door needs. Built once; `open_house` also runs and closes it."""

    settings: Settings
    registry: Registry
    services: dict[type, object]
    checkpoints: Checkpoints
    collections: Collections
    memories: Memories
    skills: Skills
    health: Health
    folding: Folding
    reading: RefReading
    answering: Answering
    analytics: Analytics
    audit: AuditLog
    embeddings: Embeddings
    language_model: LanguageModel | None
    code: CodeRoom
    store: Store
    scrubber: Scrubber
    tokens: TokenCounter
    vault: TokenVault
    sandbox: Sandbox
    policies: PolicyFile
    tool_host: ToolHost
    certificates: CertificateAuthority
    telemetry: ObservedTelemetry
    clock: Clock
    allowance: Allowance | None


def build(settings: Settings, extensions: Extensions | None = None) -> House:
    """Put the house together. Nothing is opened, loaded or listened on yet. Raises Misconfigured."""
    extensions = extensions or load_extensions(settings.plugins, settings.data_dir)
    clock = SystemClock()
    key_file = settings.data_dir / "placeholders.key"
    rules = [*extensions.scrub_rules, *chosen_rules(settings.scrub_rules)]
    scrubber = SecretScrubber(rules, lambda: kept_key(key_file), remembers=True)
    scrubber.learn_environment(environment())
    telemetry = make_telemetry(settings.otlp_endpoint, __version__, lambda text: scrubber.scrub(text).text)
    store = _store(settings, extensions)
    embedder = extensions.embedders["remote" if settings.embedding_base_url else "minilm"](settings)
    embeddings = Embeddings(dict.fromkeys(CONTENTS, embedder), telemetry, clock)
    archive = Archive(store, embeddings, scrubber, telemetry, clock)
    registry = Registry(tuple(extensions.tools), settings.toolsets)
    code = _code_room(settings, extensions, embeddings, scrubber, telemetry, clock)
    tokens = O200kCounter()
    checkpoints = Checkpoints(archive, FileFinding(code.store, code.search), tokens)
    collections = Collections(archive, code.index)
    policies = PolicyFile(settings.policies)
    sandbox = _sandbox(settings, policies)
    health = Health(store, embeddings, clock, __version__, lambda: len(registry), sandbox)
    outcomes = SqliteOutcomeLog(settings.data_dir)
    memories = Memories(archive, outcomes, clock)
    skills = Skills(archive, outcomes)
    analytics = Analytics(
        SqliteEventLog(settings.data_dir),
        outcomes,
        clock,
        Rates(settings.usd_per_million_tokens, settings.tokens_per_minute),
    )
    patterns = PatternLibrary(
        archive, lambda: PatternPack.shipped().with_patterns(extensions.patterns), outcomes
    )
    remediations = Remediations(archive, outcomes, patterns)
    language_model = _language_model(settings, tokens, clock)
    opinion = SecondOpinion(language_model, scrubber)
    troubleshooting = Troubleshooting(archive, remediations, patterns, outcomes, opinion, clock)
    references = References(store, clock)
    folding = Folding(store, references, BranchMemories(memories, tokens), scrubber, tokens, clock)
    reading = RefReading(references, folding.trail, tokens)
    tool_host = SandboxedToolHost(sandbox, extensions.processes)
    disk = LocalProjectFiles(hard_links=settings.allow_hard_links)
    files, writing = _safe_files(settings, disk, policies, scrubber, references, clock)
    fixes = KnownFixes(remediations, patterns, outcomes, store, tokens, clock)
    secrets = ProjectSecrets(disk, scrubber)
    commands = SafeCommands(sandbox, policies, scrubber, secrets, fixes, clock)
    limit = settings.rate_limit
    return House(
        settings=settings,
        registry=registry,
        services={
            Analytics: analytics,
            Checkpoints: checkpoints,
            CodeIndex: code.index,
            CodeSearch: code.search,
            CodeStatuses: code.statuses,
            Collections: collections,
            Folding: folding,
            Health: health,
            Memories: memories,
            RefReading: reading,
            Remediations: remediations,
            SafeCommands: commands,
            SafeFiles: files,
            SafeWriting: writing,
            Skills: skills,
            Symbols: code.symbols,
            ToolFinding: ToolFinding(lambda: findable(registry), embeddings),
            ToolProcesses: ToolProcesses(tool_host, scrubber),
            Troubleshooting: troubleshooting,
            **extensions.services,
        },
        checkpoints=checkpoints,
        collections=collections,
        memories=memories,
        skills=skills,
        health=health,
        folding=folding,
        reading=reading,
        answering=Answering(references, folding, tokens, clock),
        analytics=analytics,
        audit=FileAuditLog(settings.data_dir, scrubber, telemetry, clock),
        embeddings=embeddings,
        language_model=language_model,
        code=code,
        store=store,
        scrubber=scrubber,
        tokens=tokens,
        vault=TokenFile(settings.data_dir / "tokens.json"),
        sandbox=sandbox,
        policies=policies,
        tool_host=tool_host,
        certificates=CertificateAuthority(settings.data_dir / "pki", clock),
        telemetry=telemetry,
        clock=clock,
        allowance=Allowance(limit.rate) if limit.on else None,
    )


@asynccontextmanager
async def open_house(house: House, *, follows: bool = True) -> AsyncIterator[House]:
    """Run what works in the background, and close everything in order.

    `follows` False leaves the files of indexed projects alone: for commands that answer and end.
    """
    work = [house.embeddings.catch_up(house.store), house.analytics.keep_flushing()]
    if follows:
        work += [house.code.watching.run(), house.code.closer.run()]
    background = [asyncio.create_task(each) for each in work]
    try:
        yield house
    finally:
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await house.tool_host.close()
        await house.health.close()
        await house.sandbox.close()
        await house.analytics.close()
        await house.audit.close()
        await house.embeddings.close()
        if house.language_model is not None:
            await house.language_model.close()
        await house.code.store.close()
        await house.code.reader.close()
        await house.store.close()
        await asyncio.to_thread(house.telemetry.close, 2.0)


def _code_room(
    settings: Settings,
    extensions: Extensions,
    embeddings: Embeddings,
    scrubber: Scrubber,
    telemetry: Telemetry,
    clock: Clock,
) -> CodeRoom:
    reader = LocalSourceReader(extensions.languages)
    store = SqliteCodeStore(settings.data_dir, reader.recipe)
    locks = FileIndexLocks(settings.data_dir)
    used = UsedTrees(clock)
    index = CodeIndex(store, reader, scrubber, locks, used, telemetry, clock)
    watching = Watching(index, FolderWatcher(), used, clock)
    return CodeRoom(
        store=store,
        reader=reader,
        index=index,
        search=CodeSearch(store, index, reader, embeddings, scrubber, used),
        statuses=CodeStatuses(store, index, reader, embeddings),
        symbols=Symbols(store, watching),
        watching=watching,
        closer=CloserReader(store, embeddings, locks, used, clock),
    )


def _own(settings: Settings) -> tuple[str, ...]:
    """What contextd keeps for itself: no command sees it, and no tool reads or writes it."""
    return tuple(map(str, (settings.data_dir, settings.policies, settings.file)))


def _sandbox(settings: Settings, policies: PolicyFile) -> Ladder:
    return Ladder(settings.sandbox, _own(settings), policies.names, passed_on)


def _safe_files(
    settings: Settings,
    disk: ProjectFiles,
    policies: Policies,
    scrubber: Scrubber,
    references: References,
    clock: Clock,
) -> tuple[SafeFiles, SafeWriting]:
    shown = ShownSecrets(clock)
    files = SafeFiles(disk, scrubber, shown, policies, _own(settings))
    return files, SafeWriting(files, disk, policies, scrubber, shown, references)


def _language_model(settings: Settings, tokens: TokenCounter, clock: Clock) -> LanguageModel | None:
    """None unless one is configured: nothing needs it."""
    if settings.llm_base_url is None:
        return None
    from contextd.adapters.llm import ChatModel
    from contextd.adapters.token_ledger import TokenLedger

    if not settings.llm_model:
        raise Misconfigured(
            "CONTEXTD_LLM_BASE_URL is set and CONTEXTD_LLM_MODEL is not",
            "set CONTEXTD_LLM_MODEL to the model's name",
        )
    return ChatModel(
        settings.llm_base_url,
        settings.llm_model,
        TokenLedger(settings.data_dir / "llm-tokens.json", settings.llm_daily_tokens, clock),
        tokens,
        settings.llm_api_key,
        timeout_s=settings.llm_timeout_s,
    )


def _store(settings: Settings, extensions: Extensions) -> Store:
    scheme = "qdrant" if settings.qdrant_uri else settings.store.partition(":")[0]
    factory = extensions.stores.get(scheme)
    if factory is None:
        raise Misconfigured(
            f"CONTEXTD_STORE names no known store: {scheme}", f"use one of: {', '.join(extensions.stores)}"
        )
    return factory(settings.store, settings)
