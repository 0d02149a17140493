"""The watch folder over the store: files dropped into a folder become resumes of an account.

    scan or event -> note -> read -> one transaction -> report -> move -> check again

The recipe is `importer.batch`; what runs it is `importer.service`. Outcomes are next to the inbox,
and nothing that people dropped is ever deleted or overwritten.
"""
