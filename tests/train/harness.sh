# SPDX-License-Identifier: Apache-2.0
#
# What the end-to-end tests share: a test is a bash script that sources this file,
# takes a scratch folder as its argument and passes if it ends with 0. Programs and
# models come from TRAINC, TRAINC_COMPARE and TRAINC_MODELS; without them from the
# dev build of this tree.
set -euo pipefail
[ -z "${test_name:-}" ] || return 0 # sourced before

tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
: "${TRAINC:=$tree/build/dev/bin/trainc}"
: "${TRAINC_COMPARE:=$(dirname "$TRAINC")/trainc-compare}"
: "${TRAINC_FILL:=$(dirname "$TRAINC")/trainc-fill}"
: "${TRAINC_DATA:=$(dirname "$TRAINC")/trainc-data}"
: "${TRAINC_RUN:=$(dirname "$TRAINC")/trainc-run}"
: "${TRAINC_INSPECT:=$(dirname "$TRAINC")/trainc-inspect}"
: "${TRAINC_MODELS:=$tree/tests/models}"
data=$TRAINC_MODELS/data

test_name=$(basename "$0" .test)
if [ $# -ge 1 ]; then
  scratch=$1
  rm -rf "$scratch"
  mkdir -p "$scratch"
else
  scratch=$(mktemp -d "${TMPDIR:-/tmp}/$test_name.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
fi
cd "$scratch"

# Containers run as root and with few cores; nothing here may pin ranks to one core.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
# Else a rank that is killed while MPI starts may leave mpirun waiting for a lock in memory that they share (docs/failures.md).
export PMIX_MCA_gds=hash
# Of two mpiruns that begin at once one may fail as the other makes this folder, which the last one to end removes if
# no file of such a name is in it.
sessions=${TMPDIR:-/tmp}/ompi.$(hostname -s 2>/dev/null || hostname).$(id -u)
{ mkdir -p "$sessions" && touch "$sessions/output-kept"; } 2>/dev/null || true
# In a build with sanitizers: Open MPI leaks at the end of ranks, and fatal signals are the trainer's own to report.
asan_of_ranks=detect_leaks=0:verify_asan_link_order=0
asan_of_ranks+=:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0
export OMPI_MCA_mca_base_env_list=ASAN_OPTIONS=$asan_of_ranks
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

say() { echo "== $*"; }

# sample NUMBER WORD...: so many of the words, other ones with every commit, that over time each is tried; all of them
# with LONG=1. SEED=... repeats a choice, which standard error names.
sample() {
  local seed=${SEED:-}
  [ -z "${LONG:-}" ] || { printf '%s\n' "${@:2}" && return; }
  [ -n "$seed" ] || { seed=$(git -C "$tree" rev-parse HEAD 2>/dev/null) && seed=$((16#${seed:0:7})); } || seed=1
  python3 - "$seed" "$@" <<'PYTHON'
import hashlib, sys
seed, number, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
chosen = sorted(words, key=lambda word: hashlib.sha256(f"{seed} {word}".encode()).digest())[:number]
print("== chosen by SEED=" + seed, *chosen, sep="\n   ", file=sys.stderr)
print(*chosen, sep="\n")
PYTHON
}

# may_mount: what follows needs mounts of its own. Where the system allows none the test fails, unless
# TRAINC_TESTS_WITHOUT_MOUNTS says that this is known: then it ends here.
may_mount() {
  unshare -rm true 2>/dev/null && return
  [ -n "${TRAINC_TESTS_WITHOUT_MOUNTS:-}" ] ||
    fail "the system allows no mounts, which this needs; try: TRAINC_TESTS_WITHOUT_MOUNTS=1 leaves it out"
  say "ends here: the system allows no mounts"
  exit 0
}

# newest RUN: its checkpoint of the greatest step; nothing where there is none
newest() { { find "$1/checkpoints" -mindepth 1 -maxdepth 1 -name 'step*' 2>/dev/null || true; } | sort | tail -1; }

# wait_until SECONDS COMMAND...: until the command succeeds, which is tried every 20 ms; false after these seconds
wait_until() {
  local end=$((EPOCHSECONDS + $1))
  shift
  until "$@"; do
    ((EPOCHSECONDS <= end)) || return 1
    sleep 0.02
  done
}

# options_of RUN: their names in its configuration
options_of() { python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["options"], sep="\n")' "$1/configuration.json"; }

# log_lines RUN: how many steps its log has; none where there is no log
log_lines() { cat "$1/log.jsonl" 2>/dev/null | grep -c '"loss"' || true; }
has_steps() { (($(log_lines "$1") >= $2)); }
has_steps_or_ended() { has_steps "$@" || ended $!; }

# wait_for_steps RUN COUNT: until the log has as many steps. The job is `$!`, and says in RUN.txt why it has none.
wait_for_steps() {
  wait_until 120 has_steps_or_ended "$@" || true
  has_steps "$@" || { cat "$1.txt" >&2; fail "$1: $(log_lines "$1") steps, expected $2"; }
}

# newer FILE THAN: touches it; false while the file system's clock does not tell it from the other file
newer() {
  touch "$1"
  [ "$1" -nt "$2" ]
}

# ended PROCESS: also where its parent has not asked for its code
ended() { ! grep -qs '^State:[[:space:]]*[^Z[:space:]]' "/proc/$1/status"; }

# ranks_here: the processes of the job that was started in this folder, in the order of their ranks
ranks_here() {
  local process
  for process in $(pgrep -x trainer || true); do
    [ "$(readlink "/proc/$process/cwd")" = "$PWD" ] || continue
    echo "$({ cat "/proc/$process/environ" 2>/dev/null || true; } | tr '\0' '\n' | sed -n 's/^OMPI_COMM_WORLD_RANK=//p') $process"
  done | sort -n | sed 's/.* //'
}

# stops COMMAND...: quietly, a training that ends before its last step; of one in the background: stopped PROCESS FILE
stops() {
  local status=0
  "$@" >last-output.txt 2>&1 || status=$?
  [ $status = 9 ] || { cat last-output.txt; fail "exit code $status, expected 9: $*"; }
}
stopped() {
  local status=0
  wait "$1" || status=$?
  [ $status = 9 ] || { cat "$2"; fail "exit code $status of a run that was stopped, expected 9"; }
}

# plan_of FOLDER VIEW: what the plan says of memory, kernels, steps, parameters, recompute or schedule
plan_of() { "$TRAINC_INSPECT" "$1" "$2"; }

# Runs a command with its output in a file that is shown only if it fails.
quietly() {
  if ! "$@" >last-output.txt 2>&1; then
    cat last-output.txt >&2
    fail "$*"
  fi
}

# Where ccache is off: a test that compiles the same files again and again has a cache of its own.
known_again() {
  [ -z "${CCACHE_DISABLE:-}" ] || { unset CCACHE_DISABLE; export CCACHE_DIR=$PWD/ccache; }
}

# recipe FIXTURE: sets loss, inputs (--data words), labels (file), dimensions (--dim words), frozen
# (--freeze words) of a fixture of the given name.
recipe() {
  loss=cross_entropy
  frozen=()
  while read -r pattern; do
    frozen+=(--freeze "$pattern")
  done < <(sed -n '/^ "freeze": \[$/,/^ \]/s/^  "\(.*\)",\{0,1\}$/\1/p' "$TRAINC_MODELS/expected/$1.json")
  case $1 in
  mlp_* | fresh_*_mlp_*) inputs=(--data "x=$data/x.npy") dimensions=(--dim batch=8) ;;
  cnn_* | fresh_cnn_* | resnet_* | fresh_densenet_* | fresh_mixed_modes_*) inputs=(--data "x=$data/images.npy") dimensions=(--dim batch=8) ;;
  *) inputs=(--data "input_ids=$data/input_ids.npy") dimensions=(--dim batch=4 --dim sequence=16) ;;
  esac
  case $1 in
  mlp_relu_* | fresh_*_mlp_*) labels=classes.npy ;;
  cnn_* | fresh_cnn_* | resnet_* | fresh_densenet_* | fresh_mixed_modes_*) labels=image_classes.npy ;;
  mlp_gelu_*) labels=targets.npy loss=mse ;;
  mlp_tanh_*) labels=bits.npy loss=bce_with_logits ;;
  nanogpt_erf_* | gpt2_sdpa_*) labels=labels_ignored.npy ;;
  *) labels=labels.npy ;;
  esac
  if grep -q '"dynamic": false' "$TRAINC_MODELS/expected/$1.json"; then
    dimensions=()
  fi
}

# compile FIXTURE FOLDER [trainc options]: the trainer of a fixture.
compile() {
  local fixture=$1 folder=$2
  shift 2
  recipe "$fixture"
  make_once "$folder" "$TRAINC_MODELS/$fixture.onnx" "${dimensions[@]}" "${frozen[@]}" --loss "$loss" "$@"
}

# may_be_shared WORD...: no option names a file, asks for more than a trainer or leaves it out
may_be_shared() {
  local word
  for word in "$@"; do
    [[ $word != --dump-ir* && $word != --source-only && $word != --library* && $word != *[./]* ]] || return 1
  done
}

# make_once FOLDER MODEL OPTION...: what trainc makes of a model, in copies of one output for all tests that ask for the same
make_once() { kept_once run_trainc "$@"; }
run_trainc() { quietly "$TRAINC" "${@:2}" -o "$1"; }

# kept_once MAKER FOLDER MODEL OPTION...: what `MAKER FOLDER MODEL OPTION...` makes, once as long as trainc and the
# libraries of the build are the same
kept_once() {
  local maker=$1 folder=$2 made
  shift 2
  if [ -z "${TRAINC_BUILD:-}" ] || [ -e "$folder" ] || ! may_be_shared "${@:2}"; then
    "$maker" "$folder" "$@"
    return
  fi
  made=$TRAINC_BUILD/tests/trainers/$({ printf '%s\n' "$maker" "$@" && stat -c '%n %s %Y' "$TRAINC" "$TRAINC_BUILD"/lib/*.a; } | sha256sum | cut -c1-16)
  mkdir -p "$made"
  (
    flock 9
    [ -e "$made/out" ] || { rm -rf "$made/making" && "$maker" "$made/making" "$@" && mv "$made/making" "$made/out"; }
  ) 9>"$made/lock"
  cp -a "$made/out" "$folder"
}

# train FOLDER STEPS [options]: trains on the fixture's batches, in order.
train() {
  local folder=$1 steps=$2
  shift 2
  quietly "$folder/trainer" train "${inputs[@]}" --data "labels=$data/$labels" --steps "$steps" \
    --no-shuffle --no-progress "$@"
}

# check_losses FIXTURE [trainc options]: losses and gradient norms of 20 AdamW steps, against PyTorch
# in f64. Leaves the trainer in out and its losses in run/log.jsonl.
check_losses() {
  compile "$1" out "${@:2}"
  train out 20 --learning-rate 1e-3 --weight-decay 0.01 --no-checkpoints --run run --overwrite
  "$TRAINC_COMPARE" losses run/log.jsonl "$TRAINC_MODELS/expected/$1.json"
}

# check_fixture FIXTURE [trainc options]: the same and the first gradient, tensor by tensor.
check_fixture() {
  local expected=$TRAINC_MODELS/expected/$1.json
  check_losses "$@"
  quietly out/trainer gradients "${inputs[@]}" --data "labels=$data/$labels" \
    --checkpoint initial -o gradients.safetensors
  "$TRAINC_COMPARE" gradients gradients.safetensors "$expected"
}

# damage FILE OFFSET: another byte there
damage() {
  local byte=$(od -An -tu1 -j "$2" -N 1 "$1")
  printf "\\x$(printf %02x $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# refused CODE PATTERN... -- COMMAND...: the command must end with CODE and its message must
# hold every pattern (extended regular expressions) and come from no crash.
refused() {
  local code=$1 status=0 patterns=()
  shift
  while [ "$1" != -- ]; do
    patterns+=("$1")
    shift
  done
  shift
  "$@" >refused-output.txt 2>refused.txt || status=$?
  if ! [[ $status =~ ^$code$ ]]; then
    cat refused.txt >&2
    fail "exit code $status, expected $code: $*"
  fi
  for pattern in "${patterns[@]}"; do
    if ! grep -qE -- "$pattern" refused.txt; then
      cat refused.txt >&2
      fail "the message has no '$pattern': $*"
    fi
  done
  if grep -qiE 'assert|stack dump|terminate called|\(core dumped\)' refused.txt; then
    cat refused.txt >&2
    fail "crashed: $*"
  fi
}

# toy_files: what the trainer of the hand-written program reads, and a text to train on
toy_files() {
  # parameters.safetensors: a table of zeros, a bias of zeros, a scale of one
  local header='{"bias":{"dtype":"F32","shape":[256],"data_offsets":[0,1024]},'
  header+='"table":{"dtype":"F32","shape":[256,256],"data_offsets":[1024,263168]},'
  header+='"scale":{"dtype":"F32","shape":[1],"data_offsets":[263168,263172]}}'
  {
    printf "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"
    head -c 263168 /dev/zero
    printf '\0\0\x80\x3f'
  } >parameters.safetensors
  # a model without weights: ir_version 8 and a graph named "toy"
  printf '\x08\x08\x3a\x05\x12\x03toy' >export_template.onnx
  cat "$tree"/runtime/{checkpoint,data,files,options,process,ranks,run,step}/*.cpp >text.bin
}

# count_allocations TRAINER: sets `counted`, words before it where its allocations are to be counted; none
# where a sanitizer owns its allocator
count_allocations() {
  counted=()
  [[ ! $(ldd "$1" 2>/dev/null) =~ lib[at]san ]] || return 0
  "${CC:-cc}" -O2 -shared -fPIC -o allocations.so "$tree/tests/train/count_allocations.c"
  counted=(env "LD_PRELOAD=$PWD/allocations.so" "ALLOCATIONS=$PWD/allocations")
}

# allocates_nothing WHAT: between step 2 and the end of the job that was counted last
allocates_nothing() {
  [ ${#counted[@]} -gt 0 ] || return 0
  xargs -a allocations.txt -d '\n' echo "$1: allocations"
  [ "$(sed -n 's/^before //p' allocations.txt)" -gt 100 ] || fail "$1: allocations are not counted"
  grep -qx 'in steps 0' allocations.txt || { cat last-output.txt; fail "$1: memory was allocated in a step"; }
  grep -qx 'grown 0' allocations.txt || fail "$1: a step takes memory from the system"
  rm allocations allocations.txt
}

# file_faults: sets `faults`, words before a command whose disk or threads are to fail as FAULTS_... say
file_faults() {
  "${CC:-cc}" -shared -fPIC -o faults.so "$tree/tests/train/file_faults.c" -ldl
  # a sanitizer's own library comes after it
  faults=(env "LD_PRELOAD=$PWD/faults.so" "ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:verify_asan_link_order=0")
}
