#!/usr/bin/env bash
# readme_program.sh FOLDER: writes the program of README.md to program.py, and to `wanted` what it prints.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
block() { sed -n "/^\`\`\`$1/,/^\`\`\`\$/p" "$tree/README.md" | sed '1d;$d'; }
block 'python run' >"$1/program.py"
block output >"$1/wanted"
