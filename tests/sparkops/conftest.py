"""Makes the folders beside this one importable (every, golden, reference), and the helpers in it (streams)."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
