/** Does a pod that was bound to this node fit it? What is refused stays refused. */
import type { Container, Pod } from '../../api/pod.ts'
import { milliValue, quantityToNumber } from '../../api/quantity.ts'
import { hostPorts } from './container-options.ts'
import { isSidecar } from './pod-containers.ts'
import type { PortMapping } from './runtime.ts'

export type Admission =
  | { readonly admit: true }
  | { readonly admit: false; readonly reason: string; readonly message: string }

/** Kubernetes' quantities, as in Node.status.allocatable. */
export type Allocatable = { readonly [resource: string]: string | number }

/** `others`: the pods that run here already. */
export function admit(pod: Pod, others: readonly Pod[], allocatable: Allocatable): Admission {
  for (const [resource, needed] of needs(pod)) {
    // A device that is not declared is not there; before the first look at the machine nobody knows.
    const absent = resource.includes('/') && 'pods' in allocatable ? 0 : undefined
    const capacity = amount(resource, allocatable[resource]) ?? absent
    const used = others
      .flatMap((other) => needs(other).filter(([name]) => name === resource))
      .reduce((a, [, b]) => a + b, 0)
    if (needed === 0 || capacity === undefined || used + needed <= capacity) continue
    const message = `Node didn't have enough resource: ${resource}, requested: ${needed}, used: ${used}, capacity: ${capacity}`
    return { admit: false, reason: `OutOf${resource}`, message }
  }
  const taken = others.flatMap(hostPorts)
  if (hostPorts(pod).some((port) => taken.some((other) => collide(port, other)))) {
    const message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    return { admit: false, reason: 'NodePorts', message }
  }
  return { admit: true }
}

function needs({ spec }: Pod): readonly (readonly [string, number])[] {
  const request = (resource: string, { resources }: Container) =>
    amount(resource, resources?.requests?.[resource] ?? resources?.limits?.[resource]) ?? 0
  /** All at once, or the most that one init container needs in its turn, beside the sidecars started before it. */
  const total = (resource: string) => {
    let sidecars = 0
    let most = 0
    for (const container of spec.initContainers ?? []) {
      most = Math.max(most, sidecars + request(resource, container))
      if (isSidecar(container)) sidecars += request(resource, container)
    }
    const regular = spec.containers.map((container) => request(resource, container)).reduce((a, b) => a + b, 0)
    return Math.max(most, regular + sidecars)
  }
  const all = [...(spec.initContainers ?? []), ...spec.containers]
  const named = all.flatMap(({ resources }) => Object.keys({ ...resources?.limits, ...resources?.requests }))
  const extended = [...new Set(named.filter((resource) => resource.includes('/')))]
  return [
    ['pods', 1],
    ['cpu', total('cpu')],
    ['memory', total('memory')],
    ...extended.map((resource) => [resource, total(resource)] as const),
  ]
}

/** cpu in thousandths, the rest in units: as the kubelet counts in its messages. */
function amount(resource: string, quantity: string | number | undefined): number | undefined {
  if (quantity === undefined) return undefined
  return resource === 'cpu' ? milliValue(quantity) : quantityToNumber(quantity)
}

function collide(a: PortMapping, b: PortMapping): boolean {
  const everywhere = (ip: string) => ip === '' || ip === '0.0.0.0' || ip === '::'
  if (a.hostPort !== b.hostPort || a.protocol !== b.protocol) return false
  return a.hostIP === b.hostIP || everywhere(a.hostIP) || everywhere(b.hostIP)
}
