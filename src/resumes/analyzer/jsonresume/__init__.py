"""JSON Resume, the format of jsonresume.org, to the analyzer format and back.

What goes where is one table for both directions: `mapping.py`.
"""
