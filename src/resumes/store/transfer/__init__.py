"""A store as a whole: copied to another engine, backed up, and restored."""
