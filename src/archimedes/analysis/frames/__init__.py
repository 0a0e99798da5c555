"""Frames of vectors and rotations, checked by their monogram names in the user's source.

``names`` reads a name, ``values`` holds what is known of an expression, ``scopes`` decides which
letters are frames in a file, ``modules`` finds functions and classes, ``flow`` follows the values
through statements, ``functions`` knows NumPy's and the methods of attitudes, ``check`` is the door.
"""
