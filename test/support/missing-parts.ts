/** Fails a test whose required part is missing, unless the developer asked for such tests to be skipped. */

/** With how to get it. `scripts/test.sh` installs all of them but the first and the last. */
const parts = {
  root: 'run the tests as root',
  docker: 'apt-get install docker.io',
  busybox: 'apt-get install busybox-static',
  jq: 'apt-get install jq',
  kubectl: 'apt-get install kubernetes-client, version 1.29 or newer',
  mosquitto: 'apt-get install mosquitto',
  etcd: 'apt-get install --no-install-recommends etcd-server',
  'mosquitto-clients': 'apt-get install mosquitto-clients',
  prometheus: 'apt-get install --no-install-recommends prometheus',
  chromium: 'apt-get install --no-install-recommends chromium',
  dbus: 'apt-get install dbus',
  e2fsprogs: 'apt-get install e2fsprogs mount',
  'python3-kubernetes': 'apt-get install python3-kubernetes',
  ansible: 'apt-get install ansible',
  'kubectl-tools': 'apt-get install kubectx kubecolor kubetail',
  mmdebstrap: 'apt-get install mmdebstrap',
  iproute2: 'apt-get install iproute2',
  iptables: 'apt-get install iptables',
  nftables: 'apt-get install nftables',
  ufw: 'apt-get install ufw',
  conntrack: 'apt-get install conntrack',
  'wireguard-go': 'apt-get install wireguard-go',
  'wireguard-tools': 'apt-get install wireguard-tools',
  haproxy: 'apt-get install --no-install-recommends haproxy',
  perl: 'apt-get install perl',
  'util-linux': 'apt-get install bsdutils',
  gpg: 'apt-get install gpg gpg-agent',
  libfaketime: 'apt-get install libfaketime',
  clone: 'run the tests in a git clone of the repository',
} as const

export type Part = keyof typeof parts

/** A list of parts with commas between them: `docker,kubectl`. */
export const skipVariable = 'BRAMBLE_TEST_SKIP_MISSING'

/**
 * For `test(name, { skip: skipWithout('docker', isThere) }, …)`: false where the part is there, a reason where the developer
 * opted out of it. Throws otherwise: a run that misses a part is not proof.
 */
export function skipWithout(part: Part, isThere: boolean, wanted = process.env[skipVariable] ?? ''): string | false {
  const named = wanted.split(',').flatMap((name) => name.trim() || [])
  const unknown = named.find((name) => !Object.hasOwn(parts, name))
  if (unknown !== undefined) {
    throw new Error(`${skipVariable}: there is no part ${unknown}; the parts are ${Object.keys(parts).join(', ')}`)
  }
  if (isThere) return false
  if (named.includes(part)) return `${part} is missing, and ${skipVariable} names it`
  const get = `scripts/test.sh installs what the tests need (or ${parts[part]})`
  throw new Error(`This test needs ${part}, which is missing: ${get}. To skip such tests, set ${skipVariable}=${part}`)
}

export function isRoot(): boolean {
  return process.getuid?.() === 0
}
