"""The generated code on an emulated microcontroller."""
