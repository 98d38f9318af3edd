#!/usr/bin/env bash
# Rewrites docs/validation.md from what this build computes. Needs target/release/yard and ../shared/data.
set -euo pipefail
cd "$(dirname "$0")/.."
table=$(target/release/yard validate -o markdown)
cat > docs/validation.md <<TXT
# Validation

Figures of this build against published ones, printed by \`yard validate\` and written here by \`make validation\`. The same
comparison is a test (\`cargo test -p yard validate\`).

- **tiresias**: the Tiresias artifact's simulator on its 60 jobs, two nodes of four GPUs (\`--compat tiresias\`).
- **muri**: Muri's simulator on its 400-job testbed trace, eight nodes of eight GPUs (\`--compat muri\`).
- **muri testbed**: the same trace as measured on Muri's 64 GPUs.
- **blox**: Blox' LAS on its jobs 50 to 150, 32 nodes of four GPUs, rounds of 300 s (\`--compat blox\`); every job's end.
- **gavel**: Gavel's simulator on its 96 jobs, twelve GPUs of each of three kinds (\`--compat gavel\`).

$table

What it took to get there: \`lpjf\` is named for largest or longest jobs in places, but the artifact runs the longest
*pending* first and, removing from the list it walks, passes over every second job; our \`lpjf\` does the same and is there for
this comparison only. Muri charges every running job its start-up time at every event, whether it moved or not. Tiresias'
own event times for demotions are not reproduced (its 60 jobs never reach a threshold); ours come when the service is
reached.
TXT
