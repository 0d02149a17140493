"""The watch folder over the store: files dropped into a folder become resumes of an account.

    scan or event -> try -> claim by rename -> one transaction -> report -> move

The recipe is `importer.pipeline`; what runs it is `importer.service`. Outcomes lie beside the
inbox, and nothing that people dropped is ever deleted or overwritten.
"""
