"""What became of the files that were dropped, and who takes them up."""
