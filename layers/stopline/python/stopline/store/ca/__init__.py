"""Whom a database's certificate must be signed by: Amazon's roots, unless the deployment names others."""

from pathlib import Path

BUNDLE = Path(__file__).with_name("aws-rds.pem")
"""The roots of RDS in every region that its header lists, and those of RDS proxies. Made by build_ca_bundle.py."""
