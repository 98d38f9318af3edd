#!/usr/bin/env bash
# Rewrites docs/validation.md from what this build computes. Needs target/release/yard (or YARD=path) and ../shared/data.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/of_one_commit.sh
of_one_commit docs/validation.md
yard=${YARD:-target/release/yard}
# A figure that misses its tolerance is in the table and says so.
table=$("$yard" validate -o markdown) || [ -n "$table" ]
gavel="../shared/data/gavel"
same="--trace $gavel/max_min_fairness.trace --throughputs $gavel/simulation_throughputs.json --cluster v100:12,p100:12,k80:12"
policies="max-min,water-filling,finish-time,max-min:packed=true"
elastic=$(YARD="$yard" bench/elastic.py all 2> /dev/null)
commit=$(git rev-parse --short HEAD)
better=$(
  for how in "--compat gavel" "--overheads h200 --placement ignored"; do
    echo "\$ yard sim $same --policy $policies $how" | sed 's/  */ /g'
    "$yard" sim $same --policy "$policies" $how 2> /dev/null | grep -v "jobs/s"
  done
)
cat > docs/validation.md <<TXT
# Validation

Figures of commit $commit against published ones, printed by \`yard validate\` and the commands below it, and written here by
\`make validation\`. What misses its tolerance says MISSED. The same comparison is a test (\`cargo test -p yard validate\`), of estimates and what-ifs a part.

- **tiresias**: the Tiresias artifact's simulator on its 60 jobs, two nodes of four GPUs, and four (\`--compat tiresias\`).
- **muri**: Muri's simulator on its 400-job testbed trace, eight nodes of eight GPUs (\`--compat muri\`).
- **muri testbed**: the same trace as measured on Muri's 64 GPUs.
- **blox**: Blox' LAS on its jobs 50 to 150, 32 nodes of four GPUs, rounds of 300 s (\`--compat blox\`); every job's end.
- **goodput**: the batch sizes that Sia's artifact chooses in 276 cases, and its 18 fits of the throughput model to measured
  times: our misfit on the same points, in the same measure.
- **gavel**: Gavel's simulator on its 96 jobs, twelve GPUs of each of three kinds (\`--compat gavel\`); AlloX on its
  continuous single-GPU trace, statistics over jobs 100 to 200.
- **sia**: the six stored instances of Sia's integer program: the cost of our assignment, and what we prove that no
  assignment beats.
- **sia burst20**, **sia short40**: Sia's simulator on these workloads, 64 GPUs of three kinds, rounds of 60 s, speeds learned
  while jobs run. We give out devices between rounds and count restarts otherwise, so lower times are no like-for-like
  win. GPU-hours are missed on burst20: jobs that are done sooner hold more devices, and each restart of a large one costs
  more of them.
- **shockwave**: Shockwave's simulator on its 120 jobs, 32 GPUs, rounds of 120 s. Finish-time fairness is measured as in its
  results: the completion time over 120/32 of the time alone. Devices that fall free within a round are given out at once.
  The bound on unfairness (\`rho\`) is the artifact's own, 1.
- **perotin**: the policy of that name on random workflows, against what no schedule can beat; the reference is the ratio
  that is proven for one plan carried through. It plans anew at every event, which is measured here and not proven.
- **estimates**: at 40 random instants of a run the start and end of every job are estimated, and compared with what
  happened, at the second half of the instants; the first half makes the record of how estimates turned out. The forecast
  does not know who comes later. With "durations ×⅓–3" it does not know how long jobs take either: they say up to three times
  too much or too little. Four kinds of traces: steady (4), with long tails (6, \`--preset philly\`), in bursts (10), and
  Tiresias' 60 jobs in 10 random orders, after which nobody comes. In its one original order, used here before, a single job
  of half an hour decides when most others start. Starts and ends are judged apart where there are 50. Wanted: 0.85 to 0.95
  inside the 90 % interval (more where half of them have no length: nothing is shorter); the median of length ÷ time left at
  most 1, or 3 where lengths are wrong; and an interval score (Gneiting and Raftery 2007: the length, and 20 times the
  distance by which it was missed; the mean, divided by the mean time left) below that of a naive reference: the same
  middle, times the 5 % to 95 % quantiles of how far all earlier ones were off. At most one estimate in ten may be without an
  interval (it would be more than ten times as long as the time to its middle). A point of which all runs agree counts as an
  interval of no length; once 98 of 100 of them were right the next claim to be exact, are counted apart, and have to be
  right. How intervals are made was chosen on other seeds; these were looked at when it stood.
  What misses, and why. *60 jobs*: twice as much work comes as the cluster can do, and then none. When it ends cannot be
  known; with known lengths the interval spans all from now to as long again, which is more than the time left, and in the
  trace it ends before that. So intervals hold too often, under \`fifo\`, \`las\` and \`srtf\` also where lengths are wrong; only
  starts under \`max-min\` hold too seldom. *Long tails, known lengths, score*: nearly all estimates are exact, the naive
  interval of such a past is a point, and ours is not where runs differ. *Bursts, known lengths*: a point that holds nine times
  in ten is missed by far the tenth time, and the score counts 20 times the distance; under \`las\` it holds less often than that.
  *Steady, exact ones*: before a busy hour all runs may agree about what nobody could know. *Steady under \`las\`, wrong
  lengths*: half of the intervals are a little longer than three times the time left.
- **what-if**: a job is asked about just before it is submitted, while 100 jobs and more wait or run; starts that are exact
  to the microsecond where nobody comes after it (50 states for each of five policies), by what part of the time from start
  to end nine ends in ten are off at most (rounds grow after the start; the bound was set after it was seen), and the figures
  of estimates where others do come (300 for each), with as much work coming as there is room for: of \`market\`, and of all
  five together. The first half of the states makes the record, the second is judged.
- **elasticflow**: ElasticFlow's simulator on 195 jobs, 64 T4, slots of 60 s (\`--compat elasticflow --promises\`): jobs that
  were promised their deadline and met it. Its EDF gives each job the largest size that is left and charges nothing for
  changes: \`edf:size=largest --overheads none\`, at beats where it has events no less than a slot apart.
- **chronus**: Chronus' simulator on its two samples of 300 jobs, 128 GPUs (\`--compat chronus\`). When best-effort jobs wait,
  ours runs deadline jobs as late as may be, a rule that was set with this trace in view.
- **planner-golden**, **shapes**: the formulas of \`yard shapes\` on random plans, and the best split for each kind and count, as a
  second program computed them. Their rows are printed with \`--only\`; here is the sum.
- **ptdp**, **korthikanti**, **vtrain**, **mpt**, **h200-gpt**: published and measured steps against the same formulas, without any
  constant fitted to a single set but those of the kind. Of vTrain's and MPT's rows the mean is judged; also whether the split that is
  predicted fastest was measured to be. Rows of 39 billion parameters with tensor degree 2 are 20 to 37 % slower than predicted.
- **korthikanti-memory**: bytes by the formulas of Korthikanti et al., to a thousandth.
- **dapple**: the forms of DAPPLE's plans from its profiles; others hang on what its artifact does not record.
- **dag**: optima of Tarnawski et al.'s solver on graphs of layers and of operators.

$table

What it took to get there: \`lpjf\` is named for largest or longest jobs in places, but the artifact runs the longest
*pending* first and, removing from the list it walks, passes over every second job; our \`lpjf\` does the same and is there for
this comparison only. Muri charges every running job its start-up time at every event, whether it moved or not. Tiresias'
simulator keeps its jobs in one list that it sorts again at each event, so that of equal keys the one that was ahead stays
ahead; and it wakes up for the demotion of a job that ran for T s on g GPUs after (θ − T)/g more seconds instead of θ/g − T, so
that gangs go down late. Both are reproduced under its own names (\`artifact=true\`); else demotions come when the service is
reached. Its 60 jobs never reach a threshold, so the rows of \`tiresias:artifact=true:thresholds=325/720\` compare with its rules
written down once more from its program, as does \`shortest\` on four nodes; those rules give the stored figures of \`shortest\`, \`shortest-gpu\` and \`dlas-gpu\` here too.
(Under Python 2 the program rounds (θ − T)/g down, under Python 3 up; ours rounds up.)

Two rules of Gavel's artifact that its paper does not have decide its figures: a job that came after the last plan is
counted when idle devices are given away, but does not run until a plan names it, so the device idles; and AlloX takes
that one of equally good matchings which scipy finds. What is left is the few milliseconds by which its rounds fall short
of 360 s (all of AlloX' difference), the lot by which agnostic policies serve kinds, and optima that are not unique.
That is why \`max_sum_throughput_perf\` misses its 2.5 %: no rule of its is known that ours does not have.
Interior-point solvers leave a trace of share everywhere, the more the nearer an option is to being worth its price;
\`max-throughput\` gives such slivers to options without a share. What finish-time fairness leaves goes to the largest total
normalised throughput here, which shortens completion times; the row \`finish-time:rest=none\` leaves it to the rounds instead.

# Better than Gavel's rounds

The same 96 jobs and speeds, first as Gavel's simulator runs them, without any costs; then in our own rounds, with the
checkpoint costs measured on an H200.

\`\`\`
$better
\`\`\`

# The market beside the specialists

\`bench/elastic.py all\`: each on its own ground. Ratios are geometric means over the traces. What was in view while \`market\`
was made: for \`short\` and \`lambda\` six of Sia's workloads (burst20 and short40, philly 2 and 4, saturn 3 and 5), for the
other rules and parameters those of odd numbers, mixed traces 1 to 3, and all deadline traces. What was not in view stands
by itself below each table, and how far the deadlines that it meets hang on its parameters at the end.

Deadlines (the last tables): beside each trace stand six others with the same jobs at each other's submission times, none of
which was looked at while the rules were found. Why promises once cost \`market\` deadlines, and what is done about it:

- All plans were made by deadline. A long job with little time to spare then finds only gaps behind short ones that are due
  sooner, and since it cannot be in two gaps at once it was not promised, though there was a plan for all. Now jobs are also
  planned in the order in which they must begin.
- Some jobs were refused with an earliest time *before* the deadline that they asked for: what was free just before it lay
  scattered over nodes. Now earlier ends are tried too.
- \`market\` put large promised jobs off: each promise counted the same, and small jobs ask for less. In the end only sizes that
  waste devices were in time, and took the cluster from all who came. Now it works ahead first on who must begin first,
  and each device that a promise needs counts the same.

Rigid jobs only, as in Gavel's evaluation (\`v100:24,p100:24,k80:24\`; seed 1 was in view, 2 and 3 were not). Weights are
another matter: \`max-min\` gives shares in proportion to them, \`market\` lets who has more go first.

Where it is not ahead: \`edf\` and \`chronus\` hardly ever move a job, so that they restart fewer on the mixed traces, at two
to three times the completion time. With promises it meets a few deadlines of Chronus' fewer than without. On
ElasticFlow's jobs at other submission times \`elasticflow\` meets more without promises.

\`\`\`
$elastic
\`\`\`
TXT
