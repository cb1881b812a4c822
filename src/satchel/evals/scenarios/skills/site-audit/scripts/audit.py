"""Prints the audit number of a site."""

# ruff: noqa: INP001
import sys

sys.stdout.write("audit number @number@\n")
