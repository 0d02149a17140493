"""The watch folder over the store: files dropped into a folder become resumes of an account.

    scan or event -> note -> read -> one transaction -> report -> move -> look once more

The recipe is `importer.batch`; what runs it is `importer.service`. Outcomes lie beside the inbox,
and nothing that people dropped is ever deleted or overwritten.
"""
