from resumes.store import schema

DIRECTORIES = {"plans", "accounts", "key_directory", "importers", "store_facts"}


def test_every_table_but_the_directories_is_keyed_by_account_first() -> None:
    for name, table in schema.metadata.tables.items():
        if name not in DIRECTORIES:
            assert next(iter(table.primary_key.columns)).name == "account_id", name


def test_s5_nothing_cascades_from_accounts() -> None:
    for table in schema.metadata.tables.values():
        for key in table.foreign_keys:
            assert key.ondelete is None
