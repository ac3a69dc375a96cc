#!/usr/bin/env bash
# Make the pictures of README and docs anew, from a run on the demo data with the offline judge. Needs chromium.
set -euo pipefail
pictures=$(cd "$(dirname "$0")" && pwd)
cd "$(mktemp -d)"
jurygraph run single,debate,ensemble --data demo --aspect consistency --aspect fluency --out run \
  --set ensemble.roles=same --set ensemble.referees=9
jurygraph report run --html page.html
chromium --headless --no-sandbox --hide-scrollbars --window-size=1200,900 --virtual-time-budget=4000 \
  --screenshot=report.png page.html
python -c "from PIL import Image; Image.open('report.png').convert('RGB').quantize(128, dither=0).save('$pictures/report.png', optimize=True)"
FORCE_COLOR=1 COLUMNS=108 jurygraph show run drone-good --protocol debate --aspect consistency >debate.txt
python - "$pictures/debate.svg" <<'PYTHON'
import re, sys
from pathlib import Path
from rich.console import Console
from rich.text import Text

console = Console(record=True, width=108, file=Path("/dev/null").open("w"))
console.print(Text.from_ansi(Path("debate.txt").read_text()))
picture = console.export_svg(title="jurygraph show")
Path(sys.argv[1]).write_text(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.S))
PYTHON
