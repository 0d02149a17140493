"""What can be wrong with an installation: each finding with its remedy. Knows no surface."""
