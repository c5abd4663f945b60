"""`python -m opfl_chain.cli`."""

from opfl_chain.cli import main

main()
