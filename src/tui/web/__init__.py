"""The terminal UI in a browser: a server on loopback, with a process for each page that is open."""
