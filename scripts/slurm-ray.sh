#!/bin/bash
# Run a sweep on a Slurm allocation: the Ray head and the sweep on the first node, a Ray worker on each other node.
#   sbatch --nodes 4 --gpus-per-node 8 scripts/slurm-ray.sh --preset paper --n 16,32 --k 4:9 --seed 0:4
# auxmod[cluster] must be installed where every node finds it. Set VENV to use a virtual environment.
#SBATCH --job-name=auxmod
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
set -euo pipefail
[[ -n ${VENV:-} ]] && source "$VENV/bin/activate"

# Anyone who can reach Ray's port could run code as you, so Ray admits only clients with this job's token.
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_USAGE_STATS_ENABLED=0
RAY_AUTH_TOKEN=$(python -c 'import secrets; print(secrets.token_hex(32))')

port=$((20000 + SLURM_JOB_ID % 10000))
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${nodes[0]}
step=(srun --nodes=1 --ntasks=1 --overlap)
resources=(--num-cpus="${SLURM_CPUS_PER_TASK:-1}" --num-gpus="${SLURM_GPUS_ON_NODE:-0}")

"${step[@]}" --nodelist="$head" ray start --head --block --port="$port" --min-worker-port=30000 \
  --max-worker-port=39999 --include-dashboard=false "${resources[@]}" &
sleep 20
for node in "${nodes[@]:1}"; do
  "${step[@]}" --nodelist="$node" ray start --address="$head:$port" --block "${resources[@]}" &
done

# --shared: where work is saved, so that a lost node's work resumes. Running the script again resumes the whole sweep.
"${step[@]}" --nodelist="$head" auxmod sweep --cluster "$head:$port" --shared runs/shared "$@"
