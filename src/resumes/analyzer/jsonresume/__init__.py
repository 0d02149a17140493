"""Conversion between JSON Resume, the format of jsonresume.org, and the analyzer format.

What goes where is one table for both directions: `mapping.py`.
"""
