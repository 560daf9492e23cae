"""`python -m simulator.cli`: the command line without the installed program."""

from simulator.cli import main

if __name__ == "__main__":
    main()
