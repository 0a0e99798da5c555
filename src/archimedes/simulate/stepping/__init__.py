"""Steps under control: trial steps, the loops around them, and who calls those."""
