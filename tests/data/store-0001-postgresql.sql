-- The store of store-0001.sql, which version 1.0.0 copied to PostgreSQL 16 (`db copy`), where it filled the
-- search index. Dumped by `pg_dump --inserts`.
CREATE TABLE account_usage (
    account_id text NOT NULL COLLATE "C",
    resume_count integer NOT NULL,
    last_id_us bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE accounts (
    id text NOT NULL COLLATE "C",
    name text NOT NULL COLLATE "C",
    plan text NOT NULL COLLATE "C",
    created_at text NOT NULL COLLATE "C",
    closed_at text COLLATE "C"
);
CREATE TABLE alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE api_keys (
    account_id text NOT NULL COLLATE "C",
    id text NOT NULL COLLATE "C",
    name text NOT NULL COLLATE "C",
    masked text NOT NULL COLLATE "C",
    created_at text NOT NULL COLLATE "C",
    shown_at text COLLATE "C",
    last_used_at text COLLATE "C",
    expires_at text COLLATE "C",
    revoked_at text COLLATE "C",
    replaced_by text COLLATE "C"
);
CREATE TABLE deleted_accounts (
    id text NOT NULL COLLATE "C"
);
CREATE TABLE documents (
    account_id text NOT NULL COLLATE "C",
    id text NOT NULL COLLATE "C",
    crc32 bigint NOT NULL,
    document text NOT NULL COLLATE "C"
);
CREATE TABLE idempotency (
    account_id text NOT NULL COLLATE "C",
    key text NOT NULL COLLATE "C",
    body_sha256 bytea NOT NULL,
    resume_id text NOT NULL COLLATE "C",
    created_at text NOT NULL COLLATE "C"
);
CREATE TABLE import_requests (
    account_id text NOT NULL COLLATE "C",
    claim_id text NOT NULL COLLATE "C",
    action text NOT NULL COLLATE "C",
    requested_at text NOT NULL COLLATE "C",
    root text COLLATE "C"
);
CREATE TABLE imported_digests (
    account_id text NOT NULL COLLATE "C",
    digest bytea NOT NULL,
    resume_id text NOT NULL COLLATE "C"
);
CREATE TABLE imported_files (
    account_id text NOT NULL COLLATE "C",
    claim_id text NOT NULL COLLATE "C",
    name text NOT NULL COLLATE "C",
    outcome text NOT NULL COLLATE "C",
    reason text COLLATE "C",
    message text COLLATE "C",
    path text COLLATE "C",
    byte_offset bigint,
    size_bytes bigint NOT NULL,
    claimed_at text NOT NULL COLLATE "C",
    finished_at text NOT NULL COLLATE "C",
    resume_id text COLLATE "C",
    source bytea,
    root text COLLATE "C",
    items text COLLATE "C"
);
CREATE TABLE imported_items (
    account_id text NOT NULL COLLATE "C",
    claim_id text NOT NULL COLLATE "C",
    item integer NOT NULL,
    outcome text NOT NULL COLLATE "C",
    resume_id text NOT NULL COLLATE "C"
);
CREATE TABLE importers (
    id text NOT NULL COLLATE "C",
    host text NOT NULL COLLATE "C",
    pid integer NOT NULL,
    root text NOT NULL COLLATE "C",
    state text NOT NULL COLLATE "C",
    findings text NOT NULL COLLATE "C",
    waiting integer,
    started_at text NOT NULL COLLATE "C",
    seen_at text NOT NULL COLLATE "C"
);
CREATE TABLE key_directory (
    key_hash bytea NOT NULL,
    account_id text NOT NULL COLLATE "C",
    key_id text NOT NULL COLLATE "C"
);
CREATE TABLE plans (
    name text NOT NULL COLLATE "C",
    max_resumes integer,
    api_listing boolean NOT NULL,
    requests_per_minute integer,
    requests_per_hour integer,
    requests_per_day integer
);
CREATE TABLE resumes (
    account_id text NOT NULL COLLATE "C",
    id text NOT NULL COLLATE "C",
    title text COLLATE "C",
    name text COLLATE "C",
    filename text NOT NULL COLLATE "C",
    created_at text NOT NULL COLLATE "C",
    updated_at text NOT NULL COLLATE "C"
);
CREATE TABLE schema_lock (
    id integer NOT NULL
);
CREATE TABLE search_entries (
    account_id text NOT NULL COLLATE "C",
    seq bigint NOT NULL,
    id text NOT NULL COLLATE "C",
    words text NOT NULL COLLATE "C"
);
CREATE TABLE search_progress (
    account_id text NOT NULL COLLATE "C",
    number bigint NOT NULL,
    last_seq bigint NOT NULL,
    indexed_us bigint NOT NULL
);
CREATE TABLE search_trigrams (
    account_id text NOT NULL COLLATE "C",
    seq bigint NOT NULL,
    trigrams bigint[] NOT NULL
);
CREATE TABLE store_facts (
    name text NOT NULL COLLATE "C",
    value text NOT NULL COLLATE "C"
);
INSERT INTO account_usage VALUES
    ('32f2aa53cbf6fdea', 2, 1795678147498552),
    ('45e6665338401802', 2, 1795678147551855);
INSERT INTO accounts VALUES
    ('32f2aa53cbf6fdea', 'ana', 'business', '2026-11-26T07:29:07.481Z', NULL),
    ('45e6665338401802', 'bob', 'business', '2026-11-26T07:29:07.537Z', NULL);
INSERT INTO alembic_version VALUES
    ('0001');
INSERT INTO api_keys VALUES
    ('32f2aa53cbf6fdea', 'key_87a00e9f1f75', '', 'enh_live_6eP…', '2026-11-26T07:29:07.482Z', NULL, NULL, NULL, NULL, NULL),
    ('32f2aa53cbf6fdea', 'key_b4241b328f2c', 'known', 'enh_live_LTM…', '2026-11-30T05:06:39.611Z', '2026-11-30T05:06:39.628Z', NULL, NULL, NULL, NULL),
    ('45e6665338401802', 'key_467eb1cb8e47', '', 'enh_live_Z4c…', '2026-11-26T07:29:07.544Z', NULL, NULL, NULL, NULL, NULL);
INSERT INTO deleted_accounts VALUES
    ('76c2738ab9a6dff6');
INSERT INTO documents VALUES
    ('32f2aa53cbf6fdea', '00066128e61cd237c023fa5c', 3588538356, '{"header": {"name": "Grace 1", "email": "ada@example.com"}, "sections": {"summaries": {"column": 0, "items": [{"text": "Builds things that last."}]}}}'),
    ('32f2aa53cbf6fdea', '00066128e61cd2388e229e2b', 269199971, '{"header": {"name": "Zo\u00eb 2", "email": "ada@example.com"}, "sections": {"summaries": {"column": 0, "items": [{"text": "Builds things that last."}]}}}'),
    ('45e6665338401802', '00066128e61da26e6ee584e2', 3588538356, '{"header": {"name": "Grace 1", "email": "ada@example.com"}, "sections": {"summaries": {"column": 0, "items": [{"text": "Builds things that last."}]}}}'),
    ('45e6665338401802', '00066128e61da26f4f58526d', 269199971, '{"header": {"name": "Zo\u00eb 2", "email": "ada@example.com"}, "sections": {"summaries": {"column": 0, "items": [{"text": "Builds things that last."}]}}}');
INSERT INTO idempotency VALUES
    ('32f2aa53cbf6fdea', 'key-0', '\x238d70e68a0e385693f48882c412a74f1bc6ad63ebf7400b3687506063078270', '00066128e61cd236583f7814', '2026-11-26T07:29:07.498Z'),
    ('32f2aa53cbf6fdea', 'key-1', '\x245d0388c75de3a5020ab83a62af734b64dcc752f0bd3c80554a9c67815abd61', '00066128e61cd237c023fa5c', '2026-11-26T07:29:07.498Z'),
    ('32f2aa53cbf6fdea', 'key-2', '\x7f50080ec2496feabc2ee41d9ce261a25511bdf8e0223d7865766936a83f7681', '00066128e61cd2388e229e2b', '2026-11-26T07:29:07.498Z'),
    ('45e6665338401802', 'key-0', '\x238d70e68a0e385693f48882c412a74f1bc6ad63ebf7400b3687506063078270', '00066128e61da26d7eb9ecf3', '2026-11-26T07:29:07.551Z'),
    ('45e6665338401802', 'key-1', '\x245d0388c75de3a5020ab83a62af734b64dcc752f0bd3c80554a9c67815abd61', '00066128e61da26e6ee584e2', '2026-11-26T07:29:07.551Z'),
    ('45e6665338401802', 'key-2', '\x7f50080ec2496feabc2ee41d9ce261a25511bdf8e0223d7865766936a83f7681', '00066128e61da26f4f58526d', '2026-11-26T07:29:07.551Z');
INSERT INTO import_requests VALUES
    ('32f2aa53cbf6fdea', '32f2aa53cbf6bbbbbbbbbbbb', 'retry', '2026-11-26T07:29:07.532Z', '/srv/inbox'),
    ('45e6665338401802', '45e666533840bbbbbbbbbbbb', 'retry', '2026-11-26T07:29:07.568Z', '/srv/inbox');
INSERT INTO imported_digests VALUES
    ('32f2aa53cbf6fdea', '\x245d0388c75de3a5020ab83a62af734b64dcc752f0bd3c80554a9c67815abd61', '00066128e61cd237c023fa5c'),
    ('32f2aa53cbf6fdea', '\x7f50080ec2496feabc2ee41d9ce261a25511bdf8e0223d7865766936a83f7681', '00066128e61cd2388e229e2b'),
    ('45e6665338401802', '\x245d0388c75de3a5020ab83a62af734b64dcc752f0bd3c80554a9c67815abd61', '00066128e61da26e6ee584e2'),
    ('45e6665338401802', '\x7f50080ec2496feabc2ee41d9ce261a25511bdf8e0223d7865766936a83f7681', '00066128e61da26f4f58526d');
INSERT INTO imported_files VALUES
    ('32f2aa53cbf6fdea', '32f2aa53cbf6aaaaaaaaaaaa', 'ada.json', 'done', NULL, NULL, NULL, NULL, 100, '2027-01-15T08:00:00.000Z', '2026-11-26T07:29:07.498Z', NULL, NULL, NULL, NULL),
    ('32f2aa53cbf6fdea', '32f2aa53cbf6bbbbbbbbbbbb', 'ada.json', 'failed', 'invalid_json', 'why', NULL, NULL, 100, '2027-01-15T08:00:00.000Z', '2026-11-26T07:29:07.526Z', NULL, '\x7b', '/srv/inbox', NULL),
    ('45e6665338401802', '45e666533840aaaaaaaaaaaa', 'ada.json', 'done', NULL, NULL, NULL, NULL, 100, '2027-01-15T08:00:00.000Z', '2026-11-26T07:29:07.551Z', NULL, NULL, NULL, NULL),
    ('45e6665338401802', '45e666533840bbbbbbbbbbbb', 'ada.json', 'failed', 'invalid_json', 'why', NULL, NULL, 100, '2027-01-15T08:00:00.000Z', '2026-11-26T07:29:07.566Z', NULL, '\x7b', '/srv/inbox', NULL);
INSERT INTO imported_items VALUES
    ('32f2aa53cbf6fdea', '32f2aa53cbf6aaaaaaaaaaaa', 1, 'done', '00066128e61cd236583f7814'),
    ('32f2aa53cbf6fdea', '32f2aa53cbf6aaaaaaaaaaaa', 2, 'done', '00066128e61cd237c023fa5c'),
    ('32f2aa53cbf6fdea', '32f2aa53cbf6aaaaaaaaaaaa', 3, 'done', '00066128e61cd2388e229e2b'),
    ('45e6665338401802', '45e666533840aaaaaaaaaaaa', 1, 'done', '00066128e61da26d7eb9ecf3'),
    ('45e6665338401802', '45e666533840aaaaaaaaaaaa', 2, 'done', '00066128e61da26e6ee584e2'),
    ('45e6665338401802', '45e666533840aaaaaaaaaaaa', 3, 'done', '00066128e61da26f4f58526d');
INSERT INTO importers VALUES
    ('111111111111111111111111', 'host', 4711, '/srv/inbox', 'ok', '[]', 3, '2027-01-15T08:00:00.000Z', '2026-11-30T05:07:01.093Z');
INSERT INTO key_directory VALUES
    ('\x362de3350bd48135f8575894c466d2b9be33ffdb997ce30021711bb1c0654171', '45e6665338401802', 'key_467eb1cb8e47'),
    ('\x6e9c1e80d026a8460e8910df837e6ab62f52949ac9e835447a4bf1283b2e85de', '32f2aa53cbf6fdea', 'key_87a00e9f1f75'),
    ('\xc854a4a31c9e352de4aa4e9d5d971ab4d48e3ddfd2bbbd23332bbc371ec72d30', '32f2aa53cbf6fdea', 'key_b4241b328f2c');
INSERT INTO plans VALUES
    ('business', NULL, true, NULL, NULL, NULL),
    ('free', 5, false, NULL, NULL, NULL),
    ('pro', 50, false, NULL, NULL, NULL);
INSERT INTO resumes VALUES
    ('32f2aa53cbf6fdea', '00066128e61cd237c023fa5c', NULL, 'Grace 1', 'Grace1Resume.pdf', '2026-11-26T07:29:07.498Z', '2026-11-26T07:29:07.498Z'),
    ('32f2aa53cbf6fdea', '00066128e61cd2388e229e2b', NULL, 'Zoë 2', 'Zoë2Resume.pdf', '2026-11-26T07:29:07.498Z', '2026-11-26T07:29:07.498Z'),
    ('45e6665338401802', '00066128e61da26e6ee584e2', NULL, 'Grace 1', 'Grace1Resume.pdf', '2026-11-26T07:29:07.551Z', '2026-11-26T07:29:07.551Z'),
    ('45e6665338401802', '00066128e61da26f4f58526d', NULL, 'Zoë 2', 'Zoë2Resume.pdf', '2026-11-26T07:29:07.551Z', '2026-11-26T07:29:07.551Z');
INSERT INTO schema_lock VALUES
    (1);
INSERT INTO search_entries VALUES
    ('32f2aa53cbf6fdea', 1, '00066128e61cd237c023fa5c', 'grace 1 resume ada@example.com'),
    ('32f2aa53cbf6fdea', 2, '00066128e61cd2388e229e2b', 'zoe 2 resume ada@example.com'),
    ('45e6665338401802', 1, '00066128e61da26e6ee584e2', 'grace 1 resume ada@example.com'),
    ('45e6665338401802', 2, '00066128e61da26f4f58526d', 'zoe 2 resume ada@example.com');
INSERT INTO search_progress VALUES
    ('32f2aa53cbf6fdea', 1, 2, 1795678147498552),
    ('45e6665338401802', 2, 2, 1795678147551855);
INSERT INTO search_trigrams VALUES
    ('32f2aa53cbf6fdea', 1, '{-1036795532185317965,-1049938860814500402,-1102741246216892730,-1334514852585316603,-2064990401177849278,-3591177378575767387,-3877348422446222398,-4502994012262252986,-5705318835911605053,-768543229892741413,-80214867200854635,-8039993259713119153,-9089275749585956299,-9186515266050773905,-999573929855402548,1094914736257385331,1605155329066491888,2338503106338966834,2601431621439717249,3520644721795622158,3844387387657798117,5014020547996473102,6078493813715194310,622891285686778078,6497202397131229679,6657896748210930843,7156940590707237957,73967592092069596,8559046103246848574,862811725446944060,8879361925489902807}'),
    ('32f2aa53cbf6fdea', 2, '{-1049938860814500402,-1102741246216892730,-2064990401177849278,-3591177378575767387,-4502994012262252986,-5705318835911605053,-7676479309087513171,-768543229892741413,-8039993259713119153,-9089275749585956299,-9186515266050773905,-999573929855402548,1094914736257385331,1605155329066491888,2233242828735606948,2338503106338966834,2601431621439717249,3520644721795622158,4191759569887657895,5014020547996473102,6078493813715194310,622891285686778078,6479583720385009409,6497202397131229679,6657896748210930843,73967592092069596,8559046103246848574,862811725446944060,8879361925489902807}'),
    ('45e6665338401802', 1, '{-1078957450196262461,-1695892682291807040,-1964726651316813894,-2094667012158351540,-2679075291786872145,-3179356434621397640,-36892162358398565,-4149043635894008929,-4159274390465961431,-4264372482613226843,-4390619364254829648,-6142903474834181944,-6324319502161216532,-936780543036670004,1043051509089210448,2445026148148984774,2469973158931050875,296238500524592940,3521344953636639565,5032103699178885622,5227096489600612471,5432926355530214874,5972454275289387307,6431188069372564602,6857451501359841115,7407525282803037754,812719159080266697,8855945098785092683,9056399135735496035,9093221060828045385,9148514055544129271}'),
    ('45e6665338401802', 2, '{-1964726651316813894,-2094667012158351540,-3179356434621397640,-3311573249824127405,-36892162358398565,-4149043635894008929,-4159274390465961431,-4390619364254829648,-6142903474834181944,-6324319502161216532,-7190138773354285608,-936780543036670004,1043051509089210448,2445026148148984774,2469973158931050875,296238500524592940,3521344953636639565,4555591533691972866,5032103699178885622,5227096489600612471,5432926355530214874,5972454275289387307,6431188069372564602,6857451501359841115,7407525282803037754,7717437146466757806,812719159080266697,9093221060828045385,9148514055544129271}');
INSERT INTO store_facts VALUES
    ('moving_to', ''),
    ('probe', ''),
    ('oldest_program', '0001'),
    ('store_id', '00112233aabbccdd');
ALTER TABLE account_usage ADD CONSTRAINT account_usage_pkey PRIMARY KEY (account_id);
ALTER TABLE accounts ADD CONSTRAINT accounts_name_key UNIQUE (name);
ALTER TABLE accounts ADD CONSTRAINT accounts_pkey PRIMARY KEY (id);
ALTER TABLE alembic_version ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_pkey PRIMARY KEY (account_id, id);
ALTER TABLE deleted_accounts ADD CONSTRAINT deleted_accounts_pkey PRIMARY KEY (id);
ALTER TABLE documents ADD CONSTRAINT documents_pkey PRIMARY KEY (account_id, id);
ALTER TABLE idempotency ADD CONSTRAINT idempotency_pkey PRIMARY KEY (account_id, key);
ALTER TABLE import_requests ADD CONSTRAINT import_requests_pkey PRIMARY KEY (account_id, claim_id);
ALTER TABLE imported_digests ADD CONSTRAINT imported_digests_pkey PRIMARY KEY (account_id, digest);
ALTER TABLE imported_files ADD CONSTRAINT imported_files_pkey PRIMARY KEY (account_id, claim_id);
ALTER TABLE imported_items ADD CONSTRAINT imported_items_pkey PRIMARY KEY (account_id, claim_id, item);
ALTER TABLE importers ADD CONSTRAINT importers_pkey PRIMARY KEY (id);
ALTER TABLE key_directory ADD CONSTRAINT key_directory_pkey PRIMARY KEY (key_hash);
ALTER TABLE plans ADD CONSTRAINT plans_pkey PRIMARY KEY (name);
ALTER TABLE resumes ADD CONSTRAINT resumes_pkey PRIMARY KEY (account_id, id);
ALTER TABLE schema_lock ADD CONSTRAINT schema_lock_pkey PRIMARY KEY (id);
ALTER TABLE search_entries ADD CONSTRAINT search_entries_pkey PRIMARY KEY (account_id, seq);
ALTER TABLE search_progress ADD CONSTRAINT search_progress_number_key UNIQUE (number);
ALTER TABLE search_progress ADD CONSTRAINT search_progress_pkey PRIMARY KEY (account_id);
ALTER TABLE search_trigrams ADD CONSTRAINT search_trigrams_pkey PRIMARY KEY (account_id, seq);
ALTER TABLE store_facts ADD CONSTRAINT store_facts_pkey PRIMARY KEY (name);
CREATE INDEX ix_idempotency_created_at ON idempotency USING btree (created_at);
CREATE INDEX ix_imported_digests_resume ON imported_digests USING btree (account_id, resume_id);
CREATE INDEX ix_imported_files_not_done ON imported_files USING btree (account_id, outcome, claim_id, reason) WHERE (outcome <> 'done'::text);
CREATE UNIQUE INDEX ix_search_entries_id ON search_entries USING btree (account_id, id);
CREATE INDEX ix_search_trigrams ON search_trigrams USING gin (trigrams);
ALTER TABLE account_usage ADD CONSTRAINT account_usage_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id);
ALTER TABLE accounts ADD CONSTRAINT accounts_plan_fkey FOREIGN KEY (plan) REFERENCES plans(name);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id);
ALTER TABLE documents ADD CONSTRAINT documents_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id);
ALTER TABLE idempotency ADD CONSTRAINT idempotency_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id);
ALTER TABLE import_requests ADD CONSTRAINT import_requests_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id);
ALTER TABLE imported_digests ADD CONSTRAINT imported_digests_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id);
ALTER TABLE imported_files ADD CONSTRAINT imported_files_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id);
ALTER TABLE imported_items ADD CONSTRAINT imported_items_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id);
ALTER TABLE resumes ADD CONSTRAINT resumes_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id);
ALTER TABLE search_entries ADD CONSTRAINT search_entries_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id);
ALTER TABLE search_progress ADD CONSTRAINT search_progress_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id);
ALTER TABLE search_trigrams ADD CONSTRAINT search_trigrams_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id);
