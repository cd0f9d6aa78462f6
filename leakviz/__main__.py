"""``python -m leakviz`` is ``leakviz``."""

from leakviz.cli import main

if __name__ == "__main__":
    main()
