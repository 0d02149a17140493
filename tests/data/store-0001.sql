-- A store of version 1.0.0 with rows in every table: the two accounts of fill_store, in tests/support,
-- and a key of ana made by its `keys create`, enh_live_LTMHm8NNGW9V3d32JZ9JLShbjSndSZJySLHp85H36HlekZuwpViGKGMhh838UP7A.
CREATE TABLE plans (
    name TEXT NOT NULL,
    max_resumes INTEGER,
    api_listing BOOLEAN NOT NULL,
    requests_per_minute INTEGER,
    requests_per_hour INTEGER,
    requests_per_day INTEGER,
    PRIMARY KEY (name)
);
CREATE TABLE deleted_accounts (
    id TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE key_directory (
    key_hash BLOB NOT NULL,
    account_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    PRIMARY KEY (key_hash)
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
CREATE TABLE store_facts (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
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
CREATE TABLE search_progress (
    account_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    indexed_us BIGINT NOT NULL,
    PRIMARY KEY (account_id),
    FOREIGN KEY(account_id) REFERENCES accounts (id),
    UNIQUE (number)
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
CREATE INDEX ix_imported_files_not_done ON imported_files (account_id, outcome, claim_id, reason) WHERE outcome != 'done';
CREATE VIRTUAL TABLE search_trigrams USING fts5(trigrams, content='', detail=none, columnsize=0, tokenize='ascii');
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO plans VALUES
    ('free', 5, 0, NULL, NULL, NULL),
    ('pro', 50, 0, NULL, NULL, NULL),
    ('business', NULL, 1, NULL, NULL, NULL);
INSERT INTO deleted_accounts VALUES
    ('76c2738ab9a6dff6');
INSERT INTO key_directory VALUES
    (x'362de3350bd48135f8575894c466d2b9be33ffdb997ce30021711bb1c0654171', '45e6665338401802', 'key_467eb1cb8e47'),
    (x'6e9c1e80d026a8460e8910df837e6ab62f52949ac9e835447a4bf1283b2e85de', '32f2aa53cbf6fdea', 'key_87a00e9f1f75'),
    (x'c854a4a31c9e352de4aa4e9d5d971ab4d48e3ddfd2bbbd23332bbc371ec72d30', '32f2aa53cbf6fdea', 'key_b4241b328f2c');
INSERT INTO importers VALUES
    ('111111111111111111111111', 'host', 4711, '/srv/inbox', 'ok', '[]', 3, '2027-01-15T08:00:00.000Z', '2026-11-26T07:29:07.572Z');
INSERT INTO store_facts VALUES
    ('oldest_program', '0001'),
    ('moving_to', ''),
    ('probe', ''),
    ('store_id', '00112233aabbccdd');
INSERT INTO accounts VALUES
    ('32f2aa53cbf6fdea', 'ana', 'business', '2026-11-26T07:29:07.481Z', NULL),
    ('45e6665338401802', 'bob', 'business', '2026-11-26T07:29:07.537Z', NULL);
INSERT INTO account_usage VALUES
    ('32f2aa53cbf6fdea', 2, 1795678147498552),
    ('45e6665338401802', 2, 1795678147551855);
INSERT INTO api_keys VALUES
    ('32f2aa53cbf6fdea', 'key_87a00e9f1f75', '', 'enh_live_6eP…', '2026-11-26T07:29:07.482Z', NULL, NULL, NULL, NULL, NULL),
    ('32f2aa53cbf6fdea', 'key_b4241b328f2c', 'known', 'enh_live_LTM…', '2026-11-30T05:06:39.611Z', '2026-11-30T05:06:39.628Z', NULL, NULL, NULL, NULL),
    ('45e6665338401802', 'key_467eb1cb8e47', '', 'enh_live_Z4c…', '2026-11-26T07:29:07.544Z', NULL, NULL, NULL, NULL, NULL);
INSERT INTO resumes VALUES
    ('32f2aa53cbf6fdea', '00066128e61cd237c023fa5c', NULL, 'Grace 1', 'Grace1Resume.pdf', '2026-11-26T07:29:07.498Z', '2026-11-26T07:29:07.498Z'),
    ('32f2aa53cbf6fdea', '00066128e61cd2388e229e2b', NULL, 'Zoë 2', 'Zoë2Resume.pdf', '2026-11-26T07:29:07.498Z', '2026-11-26T07:29:07.498Z'),
    ('45e6665338401802', '00066128e61da26e6ee584e2', NULL, 'Grace 1', 'Grace1Resume.pdf', '2026-11-26T07:29:07.551Z', '2026-11-26T07:29:07.551Z'),
    ('45e6665338401802', '00066128e61da26f4f58526d', NULL, 'Zoë 2', 'Zoë2Resume.pdf', '2026-11-26T07:29:07.551Z', '2026-11-26T07:29:07.551Z');
INSERT INTO documents VALUES
    ('32f2aa53cbf6fdea', '00066128e61cd237c023fa5c', 3588538356, '{"header": {"name": "Grace 1", "email": "ada@example.com"}, "sections": {"summaries": {"column": 0, "items": [{"text": "Builds things that last."}]}}}'),
    ('32f2aa53cbf6fdea', '00066128e61cd2388e229e2b', 269199971, '{"header": {"name": "Zo\u00eb 2", "email": "ada@example.com"}, "sections": {"summaries": {"column": 0, "items": [{"text": "Builds things that last."}]}}}'),
    ('45e6665338401802', '00066128e61da26e6ee584e2', 3588538356, '{"header": {"name": "Grace 1", "email": "ada@example.com"}, "sections": {"summaries": {"column": 0, "items": [{"text": "Builds things that last."}]}}}'),
    ('45e6665338401802', '00066128e61da26f4f58526d', 269199971, '{"header": {"name": "Zo\u00eb 2", "email": "ada@example.com"}, "sections": {"summaries": {"column": 0, "items": [{"text": "Builds things that last."}]}}}');
INSERT INTO idempotency VALUES
    ('32f2aa53cbf6fdea', 'key-0', x'238d70e68a0e385693f48882c412a74f1bc6ad63ebf7400b3687506063078270', '00066128e61cd236583f7814', '2026-11-26T07:29:07.498Z'),
    ('32f2aa53cbf6fdea', 'key-1', x'245d0388c75de3a5020ab83a62af734b64dcc752f0bd3c80554a9c67815abd61', '00066128e61cd237c023fa5c', '2026-11-26T07:29:07.498Z'),
    ('32f2aa53cbf6fdea', 'key-2', x'7f50080ec2496feabc2ee41d9ce261a25511bdf8e0223d7865766936a83f7681', '00066128e61cd2388e229e2b', '2026-11-26T07:29:07.498Z'),
    ('45e6665338401802', 'key-0', x'238d70e68a0e385693f48882c412a74f1bc6ad63ebf7400b3687506063078270', '00066128e61da26d7eb9ecf3', '2026-11-26T07:29:07.551Z'),
    ('45e6665338401802', 'key-1', x'245d0388c75de3a5020ab83a62af734b64dcc752f0bd3c80554a9c67815abd61', '00066128e61da26e6ee584e2', '2026-11-26T07:29:07.551Z'),
    ('45e6665338401802', 'key-2', x'7f50080ec2496feabc2ee41d9ce261a25511bdf8e0223d7865766936a83f7681', '00066128e61da26f4f58526d', '2026-11-26T07:29:07.551Z');
INSERT INTO imported_files VALUES
    ('32f2aa53cbf6fdea', '32f2aa53cbf6aaaaaaaaaaaa', 'ada.json', 'done', NULL, NULL, NULL, NULL, 100, '2027-01-15T08:00:00.000Z', '2026-11-26T07:29:07.498Z', NULL, NULL, NULL, NULL),
    ('32f2aa53cbf6fdea', '32f2aa53cbf6bbbbbbbbbbbb', 'ada.json', 'failed', 'invalid_json', 'why', NULL, NULL, 100, '2027-01-15T08:00:00.000Z', '2026-11-26T07:29:07.526Z', NULL, x'7b', '/srv/inbox', NULL),
    ('45e6665338401802', '45e666533840aaaaaaaaaaaa', 'ada.json', 'done', NULL, NULL, NULL, NULL, 100, '2027-01-15T08:00:00.000Z', '2026-11-26T07:29:07.551Z', NULL, NULL, NULL, NULL),
    ('45e6665338401802', '45e666533840bbbbbbbbbbbb', 'ada.json', 'failed', 'invalid_json', 'why', NULL, NULL, 100, '2027-01-15T08:00:00.000Z', '2026-11-26T07:29:07.566Z', NULL, x'7b', '/srv/inbox', NULL);
INSERT INTO imported_items VALUES
    ('32f2aa53cbf6fdea', '32f2aa53cbf6aaaaaaaaaaaa', 1, 'done', '00066128e61cd236583f7814'),
    ('32f2aa53cbf6fdea', '32f2aa53cbf6aaaaaaaaaaaa', 2, 'done', '00066128e61cd237c023fa5c'),
    ('32f2aa53cbf6fdea', '32f2aa53cbf6aaaaaaaaaaaa', 3, 'done', '00066128e61cd2388e229e2b'),
    ('45e6665338401802', '45e666533840aaaaaaaaaaaa', 1, 'done', '00066128e61da26d7eb9ecf3'),
    ('45e6665338401802', '45e666533840aaaaaaaaaaaa', 2, 'done', '00066128e61da26e6ee584e2'),
    ('45e6665338401802', '45e666533840aaaaaaaaaaaa', 3, 'done', '00066128e61da26f4f58526d');
INSERT INTO imported_digests VALUES
    ('32f2aa53cbf6fdea', x'245d0388c75de3a5020ab83a62af734b64dcc752f0bd3c80554a9c67815abd61', '00066128e61cd237c023fa5c'),
    ('32f2aa53cbf6fdea', x'7f50080ec2496feabc2ee41d9ce261a25511bdf8e0223d7865766936a83f7681', '00066128e61cd2388e229e2b'),
    ('45e6665338401802', x'245d0388c75de3a5020ab83a62af734b64dcc752f0bd3c80554a9c67815abd61', '00066128e61da26e6ee584e2'),
    ('45e6665338401802', x'7f50080ec2496feabc2ee41d9ce261a25511bdf8e0223d7865766936a83f7681', '00066128e61da26f4f58526d');
INSERT INTO import_requests VALUES
    ('32f2aa53cbf6fdea', '32f2aa53cbf6bbbbbbbbbbbb', 'retry', '2026-11-26T07:29:07.532Z', '/srv/inbox'),
    ('45e6665338401802', '45e666533840bbbbbbbbbbbb', 'retry', '2026-11-26T07:29:07.568Z', '/srv/inbox');
INSERT INTO search_progress VALUES
    ('32f2aa53cbf6fdea', 1, 2, 1795678147498552),
    ('45e6665338401802', 2, 2, 1795678147551855);
INSERT INTO search_entries VALUES
    ('32f2aa53cbf6fdea', 1, '00066128e61cd237c023fa5c', 'grace 1 resume ada@example.com'),
    ('32f2aa53cbf6fdea', 2, '00066128e61cd2388e229e2b', 'zoe 2 resume ada@example.com'),
    ('45e6665338401802', 1, '00066128e61da26e6ee584e2', 'grace 1 resume ada@example.com'),
    ('45e6665338401802', 2, '00066128e61da26f4f58526d', 'zoe 2 resume ada@example.com');
INSERT INTO alembic_version VALUES
    ('0001');
INSERT INTO search_trigrams (rowid, trigrams) VALUES
    (1099511627777, '2e636f 31 406578 61 614065 616365 6164 616461 616d70 63 636f 636f6d 646140 65 652e63 657375 6578 657861 67 6772 677261 6c652e 6d706c 706c65 72 726163 7265 726573 73756d 756d65 78616d'),
    (1099511627778, '2e636f 32 406578 61 614065 6164 616461 616d70 63 636f 636f6d 646140 65 652e63 657375 6578 657861 6c652e 6d706c 706c65 72 7265 726573 73756d 756d65 78616d 7a 7a6f 7a6f65'),
    (2199023255553, '2e636f 31 406578 61 614065 616365 6164 616461 616d70 63 636f 636f6d 646140 65 652e63 657375 6578 657861 67 6772 677261 6c652e 6d706c 706c65 72 726163 7265 726573 73756d 756d65 78616d'),
    (2199023255554, '2e636f 32 406578 61 614065 6164 616461 616d70 63 636f 636f6d 646140 65 652e63 657375 6578 657861 6c652e 6d706c 706c65 72 7265 726573 73756d 756d65 78616d 7a 7a6f 7a6f65');
