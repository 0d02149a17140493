"""The watch folder over the store: files dropped into a folder become resumes of an account.

    scan or event -> note -> read -> one transaction -> report -> move -> check again

The steps are in `importer.pipeline`; `importer.service` runs them. The outcome folders are next to the
inbox, and no dropped file is ever deleted or overwritten.
"""
