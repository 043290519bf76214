/**
 * Loop: Events for Services whose addresses or node ports another one has too, or that are outside of the configured ranges. The API
 * gives none twice; a changed range, and objects that were restored or written into the store by hand, can have such. As
 * the repair loops of kube-apiserver it changes no Service: an address that clients use is the operator's to give up
 * (pkg/registry/core/service/ipallocator/controller and portallocator/controller; reasons and messages as there).
 */
import { noClusterIP, type Service } from '../../api/network/service.ts'
import { isWithin } from '../../api/text/cidr.ts'
import { canonicalIPv6 } from '../../api/text/ip-address.ts'
import { isInIPv6Range } from '../../api/text/ipv6-range.ts'
import type { Clock } from '../../daemon/clock.ts'
import { eachInTurns } from '../../daemon/limits/turn-limit.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { EventRecorder } from '../store/event-recorder.ts'
import { objectReference } from '../store/references.ts'
import type { Store } from '../store/store.ts'

export type ServiceAllocationNeeds = {
  readonly store: Pick<Store, 'list'>
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}

/** Ranges of Service addresses. `ipv6`: in a fleet with both families. */
export type ServiceCidrs = {
  readonly serviceCIDR: string
  readonly ipv6?: { readonly serviceCIDR: string } | undefined
}

export type AllocationProblem<S extends Service = Service> = {
  readonly service: S
  readonly reason: 'ClusterIPAlreadyAllocated' | 'ClusterIPOutOfRange' | 'PortAlreadyAllocated'
  readonly message: string
}

/** As the repair loops of kube-apiserver. */
const periodMs = 3 * 60_000

export function serviceAllocationController(
  { store, events, clock, log }: ServiceAllocationNeeds,
  cidrs: ServiceCidrs,
): Loop {
  const check = async () => {
    const { items } = await store.list('services')
    for (const { service, reason, message } of await allocationProblems(items, cidrs)) {
      const component = 'service-allocation-controller'
      await events.record({ object: objectReference(service), type: 'Warning', reason, message, component })
    }
  }
  return {
    name: 'service-allocation',
    async run(signal) {
      while (!signal.aborted) {
        await check().catch((error) => log.warn('Addresses of Services not checked', { error: storyOf(error) }))
        await clock.sleep(periodMs, signal)
      }
    },
  }
}

/**
 * Services whose address or port an earlier one has, by namespace and name: the earlier one keeps it, as in the rules
 * of the nodes. Many Services take several turns of the event loop.
 */
export async function allocationProblems<S extends Service>(
  services: readonly S[],
  cidrs: ServiceCidrs,
): Promise<readonly AllocationProblem<S>[]> {
  const used = new Set<string>()
  const isTaken = (what: string) => used.size === used.add(what).size
  const problems: AllocationProblem<S>[] = []
  await eachInTurns(await inOrder(services), (service) => {
    for (const ip of clusterIPsOf(service)) {
      const problem = addressProblem(ip, cidrs, isTaken)
      if (problem !== undefined) problems.push({ service, ...problem })
    }
    for (const port of nodePortsOf(service)) {
      if (!isTaken(`port ${port}`)) continue
      const message = `Port ${port} was assigned to multiple services; please recreate service`
      problems.push({ service, reason: 'PortAlreadyAllocated', message })
    }
  })
  return problems
}

function addressProblem(
  ip: string,
  { serviceCIDR, ipv6 }: ServiceCidrs,
  isTaken: (what: string) => boolean,
): Pick<AllocationProblem, 'reason' | 'message'> | undefined {
  const family = ip.includes(':') ? 'IPv6' : 'IPv4'
  const range = family === 'IPv4' ? serviceCIDR : ipv6?.serviceCIDR
  // Without an IPv6 range nodes do not use such an address.
  if (range === undefined) return undefined
  if (!(family === 'IPv4' ? isWithin(ip, range) : isInIPv6Range(ip, range))) {
    const message = `Cluster IP [${family}]:${ip} is not within the service CIDR ${range}; please recreate service`
    return { reason: 'ClusterIPOutOfRange', message }
  }
  if (!isTaken(canonicalIPv6(ip) ?? ip)) return undefined
  const message = `Cluster IP [${family}]:${ip} was assigned to multiple services; please recreate service`
  return { reason: 'ClusterIPAlreadyAllocated', message }
}

async function inOrder<S extends Service>(services: readonly S[]): Promise<readonly S[]> {
  const named: { readonly service: S; readonly key: string }[] = []
  await eachInTurns(services, (service) => {
    const { namespace = '', name = '' } = service.metadata
    named.push({ service, key: `${namespace}/${name}` })
  })
  return named.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ service }) => service)
}

function clusterIPsOf({ spec }: Service): readonly string[] {
  const { clusterIP = '', clusterIPs = clusterIP === '' ? [] : [clusterIP] } = spec ?? {}
  return clusterIPs.filter((ip) => ip !== '' && ip !== noClusterIP)
}

/** Each once: a Service may use one for TCP and UDP. */
function nodePortsOf({ spec }: Service): ReadonlySet<number> {
  const ports = [...(spec?.ports ?? []).map(({ nodePort = 0 }) => nodePort), spec?.healthCheckNodePort ?? 0]
  return new Set(ports.filter((port) => port !== 0))
}
