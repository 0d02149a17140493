"""Fuzzing of whatever reads bytes that a stranger wrote.

A check takes any bytes and raises AssertionError when a promise is broken; `targets` lists them.
`make test` replays the corpus and has hypothesis change it for some seconds; `make fuzz` lets
libFuzzer look for inputs that reach new code.
"""
