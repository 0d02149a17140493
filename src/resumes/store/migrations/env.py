"""Alembic's entry point: run the revisions on the connection of `migrations.run`."""

from alembic import context

from resumes.store import schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema.metadata,
    transaction_per_migration=False,
    render_as_batch=True,
)
context.run_migrations()
