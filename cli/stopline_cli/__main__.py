"""`python -m stopline_cli`."""

from stopline_cli.main import main

main()
