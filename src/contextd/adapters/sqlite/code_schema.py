"""The shape of a project's code index: what hangs on a text, and which files have that text."""

from typing import Final

CODE: Final = (
    """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE roots (
        id      INTEGER PRIMARY KEY AUTOINCREMENT,
        path    TEXT NOT NULL,
        purpose TEXT NOT NULL,
        version INTEGER NOT NULL,
        about   TEXT NOT NULL,
        UNIQUE (path, purpose)
    );
    CREATE TABLE blobs (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        hash       TEXT NOT NULL,
        language   TEXT NOT NULL,
        recipe     TEXT NOT NULL,
        generation INTEGER NOT NULL,
        lines      INTEGER NOT NULL,
        package    TEXT NOT NULL,
        build      TEXT NOT NULL,
        over_window INTEGER NOT NULL,
        content    BLOB NOT NULL,
        troubles   TEXT NOT NULL,
        UNIQUE (hash, language, recipe, generation)
    );
    CREATE TABLE files (
        root  INTEGER NOT NULL REFERENCES roots (id) ON DELETE CASCADE,
        path  TEXT NOT NULL,
        blob  INTEGER NOT NULL REFERENCES blobs (id),
        print TEXT NOT NULL,
        marks INTEGER NOT NULL,
        PRIMARY KEY (root, path)
    ) WITHOUT ROWID;
    CREATE INDEX files_blob ON files (blob);
    CREATE TABLE left_out (
        root   INTEGER NOT NULL REFERENCES roots (id) ON DELETE CASCADE,
        path   TEXT NOT NULL,
        print  TEXT NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (root, path)
    ) WITHOUT ROWID;
    CREATE TABLE symbols (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        blob       INTEGER NOT NULL REFERENCES blobs (id) ON DELETE CASCADE,
        name       TEXT NOT NULL COLLATE NOCASE,
        kind       TEXT NOT NULL,
        container  TEXT NOT NULL,
        signature  TEXT NOT NULL,
        doc        TEXT NOT NULL,
        line       INTEGER NOT NULL,
        start_line INTEGER NOT NULL,
        end_line   INTEGER NOT NULL,
        exported   INTEGER NOT NULL,
        facts      TEXT NOT NULL
    );
    CREATE INDEX symbols_blob ON symbols (blob);
    CREATE INDEX symbols_name ON symbols (name);
    CREATE TABLE chunks (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        blob       INTEGER NOT NULL REFERENCES blobs (id) ON DELETE CASCADE,
        symbol     INTEGER,
        part       INTEGER NOT NULL,
        start_line INTEGER NOT NULL,
        end_line   INTEGER NOT NULL,
        vector     BLOB
    );
    CREATE INDEX chunks_blob ON chunks (blob);
    CREATE TABLE uses (
        blob      INTEGER NOT NULL REFERENCES blobs (id) ON DELETE CASCADE,
        name      TEXT NOT NULL,
        kind      TEXT NOT NULL,
        line      INTEGER NOT NULL,
        qualifier TEXT NOT NULL,
        symbol    INTEGER
    );
    CREATE INDEX uses_name ON uses (name);
    CREATE INDEX uses_blob ON uses (blob);
    CREATE TABLE imports (
        blob   INTEGER NOT NULL REFERENCES blobs (id) ON DELETE CASCADE,
        module TEXT NOT NULL,
        alias  TEXT NOT NULL,
        name   TEXT NOT NULL
    );
    CREATE INDEX imports_blob ON imports (blob);
    CREATE INDEX imports_renamed ON imports (name) WHERE name <> '' AND alias <> name;
    CREATE TABLE patterns (
        root     INTEGER NOT NULL REFERENCES roots (id) ON DELETE CASCADE,
        folder   TEXT NOT NULL,
        symbol   INTEGER NOT NULL,
        pattern  TEXT NOT NULL,
        evidence TEXT NOT NULL,
        PRIMARY KEY (root, folder, symbol, pattern)
    ) WITHOUT ROWID;
    CREATE INDEX patterns_symbol ON patterns (symbol);
    CREATE TABLE closer (
        chunk  INTEGER PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE,
        model  TEXT NOT NULL,
        vector BLOB NOT NULL
    );
    CREATE VIRTUAL TABLE words USING fts5 (names, body, tokenize = 'porter unicode61', detail = full);
    """,
)
"""Migrations, in order.

A blob is a text in a language, taken in by a recipe: its chunks, symbols, uses and vectors hang on it and
never change. `files` says which paths of which tree have it; a tree changes by one small transaction over
`files`, after its new blobs are there. So a run that is cut off leaves the tree as it was, and a second
worktree shares the blobs of the first. `generation` lets a rebuild make all blobs anew beside the old.
"""
