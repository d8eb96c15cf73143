"""`python -m outpace`: the same command line, for launchers that start a module (`torchrun -m outpace train ...`)."""

from outpace.cli import main

if __name__ == "__main__":
    main()
