/** What is valid in the containers of a pod and hardly meant (warningsForPodSpecAndMeta in pkg/api/pod/warnings.go). */
import type { Container, ContainerPort, EnvVar, PodSpec } from '../pod.ts'
import { formatQuantity, parseQuantity } from '../quantity.ts'

export type PlacedContainer = { readonly at: string; readonly container: Container }

/** All containers of a specification at the path `at`, in the order in which Kubernetes looks at them. */
export function placedContainers(at: string, spec: PodSpec): readonly PlacedContainer[] {
  const { initContainers = [], containers, ephemeralContainers = [] } = spec
  return [
    ...initContainers.map((container, index) => ({ at: `${at}.initContainers[${index}]`, container })),
    ...containers.map((container, index) => ({ at: `${at}.containers[${index}]`, container })),
    ...ephemeralContainers.map((container, index) => ({ at: `${at}.ephemeralContainers[${index}]`, container })),
  ]
}

/** Amounts of bytes that are not whole. */
export function fractionWarnings(
  at: string,
  amounts: { readonly [resource: string]: string | number } = {},
): readonly string[] {
  return ['memory', 'ephemeral-storage'].flatMap((resource) => {
    const amount = parseQuantity(amounts[resource] ?? 0)
    if (amount.nano % 1_000_000_000n === 0n) return []
    return [`${at}[${resource}]: fractional byte value "${formatQuantity(amount)}" is invalid, must be an integer`]
  })
}

/** Variables that are defined again, unless the later one is made of the earlier. `at`: of the container. */
export function envWarnings(at: string, env: readonly EnvVar[] = []): readonly string[] {
  const names = new Set<string>()
  return env.flatMap(({ name, value = '', valueFrom }, index) => {
    const reference = `$(${name})`
    const isFirst = !names.has(name)
    names.add(name)
    if (isFirst || (valueFrom === undefined && value !== reference && value.includes(reference))) return []
    return [`${at}.env[${index}]: hides previous definition of "${name}", which may be dropped when using apply`]
  })
}

type PlacedPort = { readonly at: string; readonly port: ContainerPort }

/** Ports of one number and protocol that are compared with each other: more are not looked at. */
const mostCompared = 100
/** More do not fit into an answer, which has 4,096 characters for them. */
const mostPortWarnings = 100

/** The first 100 of ports of all containers that are the same, or partly. */
export function portWarnings(containers: readonly PlacedContainer[]): readonly string[] {
  const byNumber = new Map<string, PlacedPort[]>()
  const warnings: string[] = []
  for (const { at, container } of containers) {
    for (const [index, port] of (container.ports ?? []).entries()) {
      const placed = { at: `${at}.ports[${index}]`, port }
      const key = `${port.containerPort}/${port.protocol}`
      const others = byNumber.get(key) ?? []
      byNumber.set(key, others)
      warnings.push(...hostAddressWarnings(placed), ...others.flatMap((other) => clashWarnings(placed, other)))
      if (warnings.length >= mostPortWarnings) return warnings.slice(0, mostPortWarnings)
      if (others.length < mostCompared) others.push(placed)
    }
  }
  return warnings
}

/** The port as Go prints it. */
function hostAddressWarnings({ at, port }: PlacedPort): readonly string[] {
  const { name = '', hostPort = 0, containerPort, protocol = '', hostIP = '' } = port
  if (hostIP === '' || hostPort !== 0) return []
  const text = `{Name:${name} HostPort:0 ContainerPort:${containerPort} Protocol:${protocol} HostIP:${hostIP}}`
  return [`${at}: hostIP set without hostPort: ${text}`]
}

function clashWarnings({ at, port }: PlacedPort, other: PlacedPort): readonly string[] {
  const [hostPort, otherPort] = [port.hostPort ?? 0, other.port.hostPort ?? 0]
  const [hostIP, otherIP] = [port.hostIP ?? '', other.port.hostIP ?? '']
  if (hostIP === otherIP && hostPort === otherPort) return [`${at}: duplicate port definition with ${other.at}`]
  if (hostPort === 0 || otherPort === 0) return [`${at}: overlapping port definition with ${other.at}`]
  const isAmbiguous = hostPort === otherPort && (hostIP === '') !== (otherIP === '')
  return isAmbiguous ? [`${at}: dangerously ambiguous port definition with ${other.at}`] : []
}
