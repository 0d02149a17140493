"""The screens, a folder for each that a digit leads to."""
