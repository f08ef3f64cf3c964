"""The default store: one SQLite file a project, one shared, and an exact scan in memory."""

from contextd.adapters.sqlite.code_store import SqliteCodeStore
from contextd.adapters.sqlite.events import SqliteEventLog
from contextd.adapters.sqlite.outcomes import SqliteOutcomeLog
from contextd.adapters.sqlite.store import SqliteStore

__all__ = ["SqliteCodeStore", "SqliteEventLog", "SqliteOutcomeLog", "SqliteStore"]
