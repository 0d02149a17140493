"""How columns are kept alike on every engine."""

from typing import Any

import sqlalchemy
from sqlalchemy import TypeDecorator
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import TypeCompiler


class Text(TypeDecorator[str]):
    """Text that is compared by its bytes, as SQLite does: ids are cursors, and their order is that
    of commits. PostgreSQL would go by the language of its installation."""

    impl = sqlalchemy.Text
    cache_ok = True


@compiles(Text, "postgresql")
def _text_postgresql(kind: Text, compiler: TypeCompiler, **options: Any) -> str:
    # Of a column; a value that is compared with one takes the column's collation.
    return 'TEXT COLLATE "C"' if "type_expression" in options else "TEXT"
