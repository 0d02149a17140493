"""The resumes of one account: the list, and one of them to read."""
