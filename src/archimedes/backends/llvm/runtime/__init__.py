"""Machine code in this process: made, kept on disk, called on arrays and threads."""
