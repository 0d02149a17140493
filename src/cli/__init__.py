"""The `resumes` command: it reads flags, calls the other packages, and prints."""
