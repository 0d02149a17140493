"""Search: the words of a resume, and the queries over them. No store and no SQL."""
