"""Convert between JSON Resume, the format of jsonresume.org, and the analyzer format.

The table in `mapping.py` defines both directions.
"""
