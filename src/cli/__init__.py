"""The `resumes` command: it parses flags, calls the other packages, and prints results."""
