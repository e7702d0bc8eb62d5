"""Debian's packages are its own Python's, whatever Python comes first in PATH."""

import importlib
import os
import sys

_DEBIANS = "/usr/bin/python3"


def needs(*modules):
    """Runs the program again, by Debian's Python, if one of them cannot be imported.
    Call it before they are; what is missing there too is left to their import."""
    try:
        for module in modules:
            importlib.import_module(module)
    except ImportError:
        if sys.executable != _DEBIANS and os.path.exists(_DEBIANS):
            os.execv(_DEBIANS, [_DEBIANS, *sys.argv])
