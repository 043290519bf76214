/** Names of sysctls in a pod, and those that every node allows. */

/**
 * What they change stays within the pod (SafeSysctlAllowlist in pkg/kubelet/sysctl/safe_sysctls.go). A node rejects a pod
 * with any other.
 */
const safeSysctls: ReadonlySet<string> = new Set([
  ...['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_syncookies'],
  ...['net.ipv4.ping_group_range', 'net.ipv4.ip_unprivileged_port_start', 'net.ipv4.ip_local_reserved_ports'],
  ...['net.ipv4.tcp_keepalive_time', 'net.ipv4.tcp_fin_timeout', 'net.ipv4.tcp_keepalive_intvl'],
  ...['net.ipv4.tcp_keepalive_probes', 'net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem'],
])

/** The name with dots between its parts: `kernel/shm_rmid_forced` is another form of it, in which parts may have dots. */
export function sysctlName(name: string): string {
  const separator = /[./]/.exec(name)?.[0]
  return separator === '/' ? name.replace(/[./]/g, (one) => (one === '/' ? '.' : '/')) : name
}

export function isSafeSysctl(name: string): boolean {
  return safeSysctls.has(sysctlName(name))
}

const longestName = 253

/** In Kubernetes' words; undefined: the name is well-formed (ValidateSysctls in pkg/apis/core/validation/validation.go). */
export function sysctlNameProblem(name: string): string | undefined {
  const isValid =
    name.length <= longestName && /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/.test(name)
  return isValid ? undefined : `must have at most ${longestName} characters and match regex ${nameForm}`
}

const nameForm = '^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$'
