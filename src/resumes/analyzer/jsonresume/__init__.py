"""Conversion between JSON Resume, the format of jsonresume.org, and the analyzer format.

`mapping.py` has one table for both directions.
"""
