CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE plans (
    name TEXT NOT NULL,
    max_resumes INTEGER,
    api_listing BOOLEAN NOT NULL,
    requests_per_minute INTEGER,
    requests_per_hour INTEGER,
    requests_per_day INTEGER,
    PRIMARY KEY (name)
);
CREATE TABLE accounts (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    "plan" TEXT NOT NULL,
    created_at TEXT NOT NULL,
    closed_at TEXT,
    PRIMARY KEY (id),
    UNIQUE (name),
    FOREIGN KEY("plan") REFERENCES plans (name)
);
CREATE TABLE deleted_accounts (
    id TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE account_usage (
    account_id TEXT NOT NULL,
    resume_count INTEGER NOT NULL,
    last_id_us BIGINT NOT NULL,
    PRIMARY KEY (account_id),
    FOREIGN KEY(account_id) REFERENCES accounts (id)
);
CREATE TABLE api_keys (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    masked TEXT NOT NULL,
    created_at TEXT NOT NULL,
    shown_at TEXT,
    last_used_at TEXT,
    expires_at TEXT,
    revoked_at TEXT,
    replaced_by TEXT,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY(account_id) REFERENCES accounts (id)
);
CREATE TABLE key_directory (
    key_hash BLOB NOT NULL,
    account_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    PRIMARY KEY (key_hash)
) WITHOUT ROWID;
CREATE TABLE resumes (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT,
    name TEXT,
    filename TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY(account_id) REFERENCES accounts (id)
) WITHOUT ROWID;
CREATE TABLE documents (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    crc32 BIGINT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY(account_id) REFERENCES accounts (id)
);
CREATE TABLE idempotency (
    account_id TEXT NOT NULL,
    "key" TEXT NOT NULL,
    body_sha256 BLOB NOT NULL,
    resume_id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (account_id, "key"),
    FOREIGN KEY(account_id) REFERENCES accounts (id)
) WITHOUT ROWID;
CREATE INDEX ix_idempotency_created_at ON idempotency (created_at);
CREATE TABLE imported_files (
    account_id TEXT NOT NULL,
    claim_id TEXT NOT NULL,
    name TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT,
    message TEXT,
    path TEXT,
    byte_offset BIGINT,
    size_bytes BIGINT NOT NULL,
    claimed_at TEXT NOT NULL,
    finished_at TEXT NOT NULL,
    resume_id TEXT,
    source BLOB,
    root TEXT,
    items TEXT,
    PRIMARY KEY (account_id, claim_id),
    FOREIGN KEY(account_id) REFERENCES accounts (id)
) WITHOUT ROWID;
CREATE INDEX ix_imported_files_not_done ON imported_files (account_id, outcome, claim_id, reason) WHERE outcome != 'done';
CREATE TABLE imported_items (
    account_id TEXT NOT NULL,
    claim_id TEXT NOT NULL,
    item INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    resume_id TEXT NOT NULL,
    PRIMARY KEY (account_id, claim_id, item),
    FOREIGN KEY(account_id) REFERENCES accounts (id)
) WITHOUT ROWID;
CREATE TABLE imported_digests (
    account_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    resume_id TEXT NOT NULL,
    PRIMARY KEY (account_id, digest),
    FOREIGN KEY(account_id) REFERENCES accounts (id)
) WITHOUT ROWID;
CREATE INDEX ix_imported_digests_resume ON imported_digests (account_id, resume_id);
CREATE TABLE import_requests (
    account_id TEXT NOT NULL,
    claim_id TEXT NOT NULL,
    action TEXT NOT NULL,
    requested_at TEXT NOT NULL,
    root TEXT,
    PRIMARY KEY (account_id, claim_id),
    FOREIGN KEY(account_id) REFERENCES accounts (id)
) WITHOUT ROWID;
CREATE TABLE importers (
    id TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    root TEXT NOT NULL,
    state TEXT NOT NULL,
    findings TEXT NOT NULL,
    waiting INTEGER,
    started_at TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE search_progress (
    account_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    indexed_us BIGINT NOT NULL,
    PRIMARY KEY (account_id),
    UNIQUE (number),
    FOREIGN KEY(account_id) REFERENCES accounts (id)
) WITHOUT ROWID;
CREATE TABLE search_entries (
    account_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    id TEXT NOT NULL,
    words TEXT NOT NULL,
    PRIMARY KEY (account_id, seq),
    FOREIGN KEY(account_id) REFERENCES accounts (id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX ix_search_entries_id ON search_entries (account_id, id);
CREATE VIRTUAL TABLE search_trigrams USING fts5(trigrams, content='', detail=none, columnsize=0, tokenize='ascii');
CREATE TABLE store_facts (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name)
);
INSERT INTO alembic_version VALUES ('0001');
INSERT INTO store_facts VALUES ('oldest_program', '0001'), ('moving_to', ''), ('probe', ''), ('store_id', '00112233aabbccdd');
