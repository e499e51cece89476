"""Stand-ins for the services that the sample kinds call: HTTP servers on loopback that speak the real wire protocols.

Each counts and records every request it receives, and follows a script of faults.
"""
