# shape: table
"""The tables, as numbered migrations: number n brings a database from version n - 1 to n."""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    INSERT INTO meta VALUES ('commits', 0), ('floor', 0), ('identity', hex(randomblob(16)));
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, agent TEXT NOT NULL,
        channel TEXT NOT NULL DEFAULT '', chat TEXT NOT NULL DEFAULT '', thread TEXT NOT NULL DEFAULT '',
        title TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '', parent TEXT NOT NULL DEFAULT '',
        created INTEGER NOT NULL, updated INTEGER NOT NULL, archived INTEGER NOT NULL DEFAULT 0,
        open INTEGER NOT NULL DEFAULT 0, damaged INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX sessions_updated ON sessions (archived, updated);
    CREATE INDEX sessions_open ON sessions (open) WHERE open = 1;
    CREATE TABLE events (
        n INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL,
        at INTEGER NOT NULL, turn TEXT NOT NULL, actor TEXT NOT NULL, body BLOB NOT NULL, crc INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX events_place ON events (session, seq);
    CREATE TABLE erasing (session INTEGER PRIMARY KEY);
    CREATE TRIGGER events_update BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
    CREATE TRIGGER events_delete BEFORE DELETE ON events
        WHEN NOT EXISTS (SELECT 1 FROM erasing WHERE session = old.session)
        BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
    CREATE TABLE inbox (
        id TEXT PRIMARY KEY, session TEXT NOT NULL, channel TEXT NOT NULL, account TEXT NOT NULL,
        external_id TEXT NOT NULL, accepted INTEGER NOT NULL, state TEXT NOT NULL, seq INTEGER NOT NULL DEFAULT 0,
        reason TEXT NOT NULL DEFAULT '', item BLOB NOT NULL
    );
    CREATE UNIQUE INDEX inbox_once ON inbox (channel, account, external_id) WHERE external_id <> '';
    CREATE INDEX inbox_waiting ON inbox (session) WHERE state = 'waiting';
    CREATE INDEX inbox_session ON inbox (session);
    CREATE TABLE outbox (
        id TEXT PRIMARY KEY, session TEXT NOT NULL, state TEXT NOT NULL, queued INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL DEFAULT 0, expires INTEGER NOT NULL DEFAULT 0,
        error TEXT NOT NULL DEFAULT '', platform_id TEXT NOT NULL DEFAULT '', item BLOB NOT NULL
    );
    CREATE INDEX outbox_pending ON outbox (state, queued) WHERE state <> 'delivered';
    CREATE INDEX outbox_session ON outbox (session);
    CREATE TABLE snapshots (
        session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, version TEXT NOT NULL, crc INTEGER NOT NULL,
        data BLOB NOT NULL
    );
    CREATE TABLE usage (
        day TEXT NOT NULL, session TEXT NOT NULL, agent TEXT NOT NULL, user TEXT NOT NULL, model TEXT NOT NULL,
        purse TEXT NOT NULL, input INTEGER NOT NULL, cached INTEGER NOT NULL, cache_write INTEGER NOT NULL,
        output INTEGER NOT NULL, reasoning INTEGER NOT NULL, calls INTEGER NOT NULL, usd REAL NOT NULL,
        PRIMARY KEY (day, session, agent, user, model, purse)
    ) WITHOUT ROWID;
    CREATE INDEX usage_session ON usage (session);
    CREATE TABLE kv (
        namespace TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, expires INTEGER NOT NULL,
        PRIMARY KEY (namespace, key)
    ) WITHOUT ROWID;
    CREATE TABLE blob_refs (
        digest TEXT NOT NULL, session TEXT NOT NULL, PRIMARY KEY (digest, session)
    ) WITHOUT ROWID;
    CREATE INDEX blob_refs_session ON blob_refs (session);
    CREATE TABLE damages (
        what TEXT NOT NULL, place TEXT NOT NULL, found INTEGER NOT NULL, action TEXT NOT NULL,
        session TEXT NOT NULL, PRIMARY KEY (what, place)
    ) WITHOUT ROWID;
    CREATE TABLE quarantine (
        session TEXT NOT NULL, seq INTEGER NOT NULL, found INTEGER NOT NULL, raw TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) WITHOUT ROWID;
    CREATE TABLE erased (session INTEGER PRIMARY KEY);
    """,
)
"""`meta.floor`: numbers of events up to here were given, even if their events were erased; no number comes twice."""
