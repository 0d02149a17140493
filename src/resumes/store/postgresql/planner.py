"""What PostgreSQL's planner is told about the disk: that a row costs little wherever it lies.

A page of a list is one range of a primary key, so the best plan is always to walk that. But by
default the planner takes every row that an index leads to for four times as dear as one that it
comes by, as on a spinning disk. Where its statistics know nothing of an account yet, because it is
new or has grown at once, it then fetches and sorts all of the account for each page. Source:
`random_page_cost` in the manual, and benchmarks/README.md.
"""

import logging
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

logger = logging.getLogger("resumes.store")

RANDOM_PAGE_COST: Final = "1.1"
"""Beside 1 for a page that is read in order: what is set for solid state disks."""


def set_page_cost(connection: Connection) -> None:
    """New connections of this role to this database plan so; part of the caller's transaction.

    Nothing is changed where somebody has chosen a value, and where it may not be.
    """
    source = text("SELECT source FROM pg_settings WHERE name = 'random_page_cost'")
    try:
        with connection.begin_nested():
            if connection.execute(source).scalar() != "default":
                return
            name = connection.execute(text("SELECT current_database()")).scalar_one()
            quoted = connection.dialect.identifier_preparer.quote_identifier(name)
            # As a default of the role: a pooler between us may take settings from no session.
            connection.exec_driver_sql(
                f"ALTER ROLE CURRENT_USER IN DATABASE {quoted} "
                f"SET random_page_cost = {RANDOM_PAGE_COST}"
            )
    except DBAPIError as error:
        logger.info("The planner keeps its costs: %s", error.orig)
