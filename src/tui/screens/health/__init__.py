"""What is well, what is not, and what to do about it."""
