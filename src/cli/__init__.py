"""The `resumes` command, which parses flags, calls the other packages and prints the results."""
