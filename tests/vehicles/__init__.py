"""Tests of vehicles."""
