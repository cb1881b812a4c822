"""Private directories in the place for temporary files: made, locked, removed, and swept after a process was killed."""
