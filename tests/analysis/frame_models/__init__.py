"""Models as strangers write them, for the checker of frames: read as text, never imported."""
