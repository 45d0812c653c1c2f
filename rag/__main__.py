"""The ``rag`` command, also as ``python -m rag``: Ctrl-C is one sentence and exit code 130 from the first import on."""

import signal
import sys
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    """Run the command line until it ends or is interrupted."""
    pressed = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # what starts in the background ignores Ctrl-C
        signal.signal(signal.SIGINT, interrupt)
    try:
        from rag.cli.app import main as command

        command()
    except (KeyboardInterrupt, ImportError, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code != INTERRUPTED:
            raise
        if isinstance(error, ImportError) and not pressed:  # what Ctrl-C becomes where SciPy is just being imported
            raise
        sys.stderr.write("rag: stopped; what was finished is saved\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
