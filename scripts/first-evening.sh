#!/usr/bin/env bash
# The first evening of a new owner on a machine that has nothing installed: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/first-evening.sh [--release bookworm|trixie]

Makes a minimal Debian (mmdebstrap --variant=minbase) with a clone of the last commit, and takes the steps of README.md there, in its order: quickstart,
kubectl, a Deployment with a Service, a second node, and the end of all. Prints how long each step took. Not part of the tests. Needs root, mmdebstrap,
git, 4 GB in /var/tmp, and that nothing else on this machine has the ports 6443 and 8883: the network is that of this machine.

  --release NAME  of Debian (bookworm)
  --help

No registry of images is asked: a busybox of Debian is imported in place of one.
TXT
}

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/support/print.sh
. scripts/support/print.sh
# shellcheck source=scripts/support/minimal-root.sh
. scripts/support/minimal-root.sh

while [ $# -gt 0 ]; do
  case $1 in
    --release) release=${2:?"--release: which one?"} && shift 2 ;;
    --help) usage && exit 0 ;;
    *) echo "first-evening.sh: unknown argument $1; see --help" >&2 && exit 64 ;;
  esac
done
[ "$release" = bookworm ] || [ "$release" = trixie ] || { echo "first-evening.sh: --release takes bookworm or trixie, not $release" >&2 && exit 64; }

folder=''

main() {
  [ "$(id -u)" = 0 ] || fail 'Only root can make a root file system' 'Run it with sudo.'
  local program
  for program in mmdebstrap git; do
    command -v "$program" >/dev/null || fail "$program is missing" "apt-get install $program"
  done
  trap 'rm -rf --one-file-system -- "$folder"' EXIT
  trap 'exit 130' INT TERM
  folder=$(mktemp -d /var/tmp/bramble-evening.XXXXXX) || fail 'There is no room for a root' 'Free some in /var/tmp.'
  quietly "Making a minimal Debian $release" "$folder/log" make_root "$folder/root" || fail 'The root could not be made' 'The cause is in the log.' "$folder/log"
  unshare --mount --pid --fork --kill-child --propagation private bash -euo pipefail -c "
    . scripts/support/print.sh; . scripts/support/minimal-root.sh
    $(declare -f evening timed fetch_kubectl pod_answers second_node)
    evening \"\$@\"" bash "$folder/root"
}

# evening ROOT
evening() {
  local steps=()
  pivot_into "$1"
  cd "$clone" || return
  export "${variables[@]}" KUBECONFIG=/var/lib/bramble/kubeconfig
  timed 'scripts/quickstart.sh --yes --background, until the node is Ready' scripts/quickstart.sh --yes --background
  # That of Debian 12 is too old, and quickstart.sh prints where to get one.
  command -v kubectl >/dev/null || timed 'a kubectl, from npm' fetch_kubectl
  timed 'kubectl get nodes' kubectl get nodes
  docker_of_node=$(printf '%s\n' /var/lib/bramble/docker.sock /run/docker.sock | while read -r socket; do [ ! -S "$socket" ] || { echo "$socket" && break; }; done)
  quietly 'Installing a busybox for an image' /root/busybox.log apt-get install --yes --no-install-recommends busybox-static
  tar -C / -ch bin/busybox | docker -H "unix://$docker_of_node" import --change 'ENTRYPOINT ["/bin/busybox"]' - evening:1 >/dev/null
  timed 'kubectl create deployment' kubectl create deployment web --image=evening:1 --replicas=2 -- /bin/busybox sh -c \
    'mkdir /www && hostname >/www/index.html && exec /bin/busybox httpd -f -p 8080 -h /www'
  timed '… rollout status' kubectl rollout status deployment/web --timeout=120s
  timed 'kubectl expose, until it has a name and a pod answers' pod_answers
  timed 'token create --print-join-command' bash -c 'scripts/bramble-controller token create --kubeconfig "$KUBECONFIG" --print-join-command 2>&1 | tee /root/join'
  timed 'its line with --data and --node-name, until the second node is Ready' second_node
  timed 'kubectl get nodes' kubectl get nodes -o wide
  timed 'scripts/quickstart.sh --stop, the second node' scripts/quickstart.sh --stop --data /root/second
  timed 'scripts/quickstart.sh --stop' scripts/quickstart.sh --stop
  step 'The evening'
  printf '%s\n' "${steps[@]}"
}

# timed WHAT COMMAND…
timed() {
  local what=$1 began=${EPOCHREALTIME/./} tenths
  shift
  step "$what"
  "$@"
  tenths=$(((${EPOCHREALTIME/./} - began + 50000) / 100000))
  steps+=("| $what | $((tenths / 10)).$((tenths % 10)) s |")
}

fetch_kubectl() { ln -s "$(test/clients/fetch-kubectl.sh | grep '1\.32')" /usr/local/bin/kubectl; }

# By the name in its DNS, and at the address: the static busybox cannot resolve the names of its requests itself.
pod_answers() {
  local address
  kubectl expose deployment web --port=80 --target-port=8080
  address=$(kubectl get service web --output 'jsonpath={.spec.clusterIP}')
  for _ in {1..60}; do
    kubectl exec deployment/web -- /bin/busybox sh -c "/bin/busybox nslookup web.default.svc.cluster.local && printf 'GET / HTTP/1.0\r\n\r\n' | /bin/busybox nc -w 2 $address 80 | /bin/busybox grep '^web-'" && return
    sleep 1
  done
  fail 'The Service does not answer' 'See above.'
}

second_node() {
  local line
  line=$(grep -o 'scripts/quickstart.sh --join .*' /root/join)
  # shellcheck disable=SC2086 # the line has words
  $line --yes --background --data /root/second --node-name second
}

main "$@"
