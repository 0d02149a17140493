"""The importer turns the files dropped into a watched folder into an account's resumes.

    scan or event -> note -> read -> one transaction -> report -> move -> check again

The steps are in `importer.pipeline`; `importer.service` runs them. The outcome folders are next to
the inbox. A dropped file is never deleted or overwritten.
"""
