"""Alembic's entry: runs the revisions on the connection that `upgrade` hands over."""

from alembic import context

from resumes.store import schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema.metadata,
    transaction_per_migration=False,
    render_as_batch=True,
)
context.run_migrations()
