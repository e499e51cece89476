"""`stopline demo`: the incident that the project exists for, with real parts, ending properly.

`scenario` says what goes wrong, `expect` works out what must come of it, `driver` lets it happen, `found` reads what
came of it, and `compare` names every difference.
"""
