/** Writes what a Service of the type LoadBalancer should have, and records what changed for it. */
import { isDeepStrictEqual } from 'node:util'
import { allNodes, loadBalancerNodeAnnotation } from '../../../api/network/load-balancer.ts'
import type { Service } from '../../../api/network/service.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { keyFrom } from '../../store/informer.ts'
import { objectReference } from '../../store/references.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import { type Balancing, isBalanced, notBalanced } from './balanced-services.ts'

export type BalancerNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}

type StoredService = StoredObject<'services'>

export interface BalancerWrites {
  /** Status and annotation change together, or not at all. Rejects with the store's error. */
  write(key: string, before: StoredService, balancing: Balancing): Promise<void>
  /** The Service is gone. */
  forget(key: string): void
}

/** The reasons of Events are those of Kubernetes' service controller. */
export function balancerWrites({ store, events, clock, log }: BalancerNeeds): BalancerWrites {
  const problems = new Map<string, string>()

  const record = async (service: StoredService, type: 'Normal' | 'Warning', reason: string, message: string) => {
    const object = objectReference(service)
    try {
      await events.record({ object, type, reason, message, component: 'service-controller' })
    } catch (error) {
      log.warn('Event not recorded', { reason, object: object.name, error })
    }
  }

  const recordProblem = async (key: string, service: StoredService, problem: string | undefined) => {
    if (problem === problems.get(key)) return
    if (problem === undefined) problems.delete(key)
    else {
      problems.set(key, problem)
      await record(service, 'Warning', 'SyncLoadBalancerFailed', problem)
    }
  }

  return {
    forget: (key) => problems.delete(key),
    async write(key, before, balancing) {
      await recordProblem(key, before, balancing.problem)
      if (isDeepStrictEqual(withBalancing(before, balancing), before)) return
      const { uid } = before.metadata
      const written = await rewrite({ store, clock }, 'services', {
        key: keyFrom(key),
        uid,
        change(fresh) {
          const wanted = withBalancing(fresh, isBalanced(fresh) ? balancing : withdrawn(fresh))
          return isDeepStrictEqual(wanted, fresh) ? undefined : wanted
        },
      })
      if (written === undefined) return
      const { ips, node } = balancing
      log.info('Load balancer changed', { service: key, addresses: ips, ...(node !== undefined && { node }) })
      const change = changeOf(before, written)
      if (change !== undefined) await record(written, 'Normal', change.reason, change.message)
    },
  }
}

/** One that waits for its finalizers has no address any more: it may already be that of another Service. */
function withdrawn({ spec }: Service): Balancing | undefined {
  return spec?.loadBalancerClass ? undefined : notBalanced
}

/** `balancing` undefined: the Service is one of another program; its status is not changed. */
function withBalancing<S extends Service>(service: S, balancing: Balancing | undefined): S {
  const { metadata, status } = service
  const { [loadBalancerNodeAnnotation]: _, ...others } = metadata.annotations ?? {}
  const node = balancing?.node
  const annotations = node === undefined ? others : { ...others, [loadBalancerNodeAnnotation]: node }
  const { annotations: __, ...named } = metadata
  const annotated = { ...named, ...(Object.keys(annotations).length > 0 && { annotations }) }
  if (balancing === undefined) return { ...service, metadata: annotated }
  const ingress = balancing.ips.map((ip) => ({ ip, ipMode: 'VIP' }))
  return {
    ...service,
    metadata: annotated,
    status: { ...status, loadBalancer: ingress.length === 0 ? {} : { ingress } },
  }
}

type Change = { readonly reason: string; readonly message: string }

/** Nodes that come and go with their own addresses cause no Event. */
function changeOf(before: Service, after: Service): Change | undefined {
  const [had, has] = [ipsOf(before), ipsOf(after)]
  const [from, to] = [nodeOf(before), nodeOf(after)]
  const node = to === undefined || to === allNodes ? '' : `; node ${to} answers for ${has.length === 1 ? 'it' : 'them'}`
  if (has.length === 0) {
    return had.length === 0 ? undefined : { reason: 'UpdatedLoadBalancer', message: `Withdrawn: ${had.join(', ')}` }
  }
  if (had.length === 0 || (to !== allNodes && had.join() !== has.join())) {
    return { reason: 'EnsuredLoadBalancer', message: `Assigned: ${has.join(', ')}${node}` }
  }
  if (from === to || to === undefined || to === allNodes) return undefined
  const instead = from === undefined ? '' : ` in place of ${from}`
  return { reason: 'UpdatedLoadBalancer', message: `Node ${to} answers for ${has.join(', ')}${instead}` }
}

function ipsOf({ status }: Service): readonly string[] {
  return (status?.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip)
}

function nodeOf({ metadata }: Service): string | undefined {
  return metadata.annotations?.[loadBalancerNodeAnnotation]
}
