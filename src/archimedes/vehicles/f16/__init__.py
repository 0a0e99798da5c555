"""The F-16: tables, aerodynamics, engine, the whole aircraft, an autopilot."""
