#!/usr/bin/env bash
# Rewrites docs/validation.md from what this build computes. Needs target/release/yard and ../shared/data.
set -euo pipefail
cd "$(dirname "$0")/.."
table=$(target/release/yard validate -o markdown)
gavel="../shared/data/gavel"
same="--trace $gavel/max_min_fairness.trace --throughputs $gavel/simulation_throughputs.json --cluster v100:12,p100:12,k80:12"
policies="max-min,water-filling,finish-time,max-min:packed=true"
better=$(
  for how in "--compat gavel" "--overheads h200 --placement ignored"; do
    echo "\$ yard sim $same --policy $policies $how" | sed 's/  */ /g'
    target/release/yard sim $same --policy "$policies" $how 2> /dev/null | grep -v "jobs/s"
  done
)
cat > docs/validation.md <<TXT
# Validation

Figures of this build against published ones, printed by \`yard validate\` and written here by \`make validation\`. The same
comparison is a test (\`cargo test -p yard validate\`).

- **tiresias**: the Tiresias artifact's simulator on its 60 jobs, two nodes of four GPUs (\`--compat tiresias\`).
- **muri**: Muri's simulator on its 400-job testbed trace, eight nodes of eight GPUs (\`--compat muri\`).
- **muri testbed**: the same trace as measured on Muri's 64 GPUs.
- **blox**: Blox' LAS on its jobs 50 to 150, 32 nodes of four GPUs, rounds of 300 s (\`--compat blox\`); every job's end.
- **goodput**: the batch sizes that Sia's artifact chooses in 276 cases, and its 18 fits of the throughput model to measured
  times: our misfit on the same points, in the same measure.
- **gavel**: Gavel's simulator on its 96 jobs, twelve GPUs of each of three kinds (\`--compat gavel\`); AlloX on its
  continuous single-GPU trace, statistics over jobs 100 to 200.

$table

What it took to get there: \`lpjf\` is named for largest or longest jobs in places, but the artifact runs the longest
*pending* first and, removing from the list it walks, passes over every second job; our \`lpjf\` does the same and is there for
this comparison only. Muri charges every running job its start-up time at every event, whether it moved or not. Tiresias'
own event times for demotions are not reproduced (its 60 jobs never reach a threshold); ours come when the service is
reached.

Two rules of Gavel's artifact that its paper does not have decide its figures: a job that came after the last plan is
counted when idle devices are given away, but does not run until a plan names it, so the device idles; and AlloX takes
that one of equally good matchings which scipy finds. What is left is the few milliseconds by which its rounds fall short
of 360 s (all of AlloX' difference), the lot by which agnostic policies serve kinds, and optima that are not unique.
Interior-point solvers leave a trace of share everywhere, the more the nearer an option is to being worth its price;
\`max-throughput\` gives such slivers to options without a share, and comes within 2.6 %. What finish-time fairness leaves
goes to the largest total normalised throughput here, which shortens completion times; left to the rounds instead
(\`rest=none\`), it is Gavel's to 2 %.

# Better than Gavel's rounds

The same 96 jobs and speeds, first as Gavel's simulator runs them, without any costs; then in our own rounds, with the
checkpoint costs measured on an H200.

\`\`\`
$better
\`\`\`
TXT
