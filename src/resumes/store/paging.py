"""Rows in the order of their keys, a page at a time: each begins after the last key of the one before.

However far a reader has come, no page costs more than another.
"""

from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, tuple_

from resumes.store.statements import at_most


def first_page(statement: Select[Any], *keys: ColumnElement[Any]) -> Select[Any]:
    """The first of the statement's rows, as many as its parameter `rows` says."""
    return statement.order_by(*keys).limit(at_most("rows"))


def next_page(statement: Select[Any], *keys: ColumnElement[Any]) -> Select[Any]:
    """As many rows after a key. Its parts are parameters that are called after the columns:
    `after_claim_id`, `after_item`."""
    after = (bindparam(f"after_{key.name}", type_=key.type) for key in keys)
    return first_page(statement.where(tuple_(*keys) > tuple_(*after)), *keys)
