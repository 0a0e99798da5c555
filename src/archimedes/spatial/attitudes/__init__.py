"""Attitudes: one file per class over one file of array functions per representation."""
