/** The cards of the whole fleet, kept while a page is open: informers mark what changed, a round computes it again. */
import type { CardKind } from '../../api/dashboard/dashboard-messages.ts'
import { nodeCard } from '../../api/dashboard/node-card.ts'
import { nodeLeaseNamespace } from '../../api/lease.ts'
import { informer } from '../../broker-controller/store/informer.ts'
import type { Store, StoredObject } from '../../broker-controller/store/store.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { type CardOf, type CardTable, cardTable } from './card-table.ts'
import { daemonSetCard, eventCard, replicatedCard, requestCard } from './cards/other-cards.ts'
import { podCard } from './cards/pod-card.ts'

export type FleetCardNeeds = {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  /** The common name in a certificate request (PEM); undefined when it cannot be read. */
  readonly commonNameOf: (request: string) => string | undefined
}

export interface FleetCards {
  readonly tables: { readonly [K in CardKind]: CardTable }
  readonly nodes: () => Iterable<StoredObject<'nodes'>>
  /** Resolves when every object is marked. */
  readonly listed: Promise<unknown>
  run(signal: AbortSignal): Promise<void>
}

/** The newest Events that have cards, so that a page keeps a bounded number. */
const mostEvents = 1_000

/** Nothing is read before `run`. */
export function fleetCards(needs: FleetCardNeeds): FleetCards {
  const { store, log, commonNameOf } = needs
  const podsOfNode = new Map<string, number>()
  const countPod = (node: string | undefined, by: 1 | -1) => {
    if (node === undefined) return
    podsOfNode.set(node, (podsOfNode.get(node) ?? 0) + by)
    tables.nodes.mark(node)
  }
  const nodes = informer(needs, 'nodes', (now, before) => tables.nodes.mark(nameOf(now ?? before)))
  const pods = informer(needs, 'pods', (now, before) => {
    tables.pods.mark(keyOf(now ?? before))
    if (now?.spec.nodeName === before?.spec.nodeName) return
    countPod(before?.spec.nodeName, -1)
    countPod(now?.spec.nodeName, 1)
  })
  const events = informer(needs, 'events', (now, before) => tables.events.mark(keyOf(now ?? before)))
  const deployments = informer(needs, 'deployments', (now, before) => markWorkload('Deployment', now ?? before))
  const statefulSets = informer(needs, 'statefulsets', (now, before) => markWorkload('StatefulSet', now ?? before))
  const daemonSets = informer(needs, 'daemonsets', (now, before) => markWorkload('DaemonSet', now ?? before))
  const requests = informer(needs, 'certificatesigningrequests', (now, before) =>
    tables.requests.mark(nameOf(now ?? before)),
  )
  const markWorkload = (kind: string, object: Keyed | undefined) => tables.workloads.mark(`${kind}/${keyOf(object)}`)

  const nodeCardOf: CardOf = async (name) => {
    const node = nodes.get({ namespace: '', name })
    if (node === undefined) return undefined
    const lease = await store.get('leases', { namespace: nodeLeaseNamespace, name })
    const facts = { pods: podsOfNode.get(name) ?? 0, renewed: lease?.spec?.renewTime }
    return { namespace: '', card: nodeCard(node, facts) }
  }
  const tables = {
    nodes: cardTable(nodeCardOf),
    pods: cardTable(async (key) => {
      const pod = pods.get(keyIn(key))
      return pod && { namespace: pod.metadata.namespace ?? '', card: podCard(pod) }
    }),
    events: cardTable(async (key) => {
      const event = events.get(keyIn(key))
      if (event === undefined) return undefined
      const card = eventCard(event)
      return { namespace: event.metadata.namespace ?? '', card, rank: card.at }
    }, mostEvents),
    workloads: cardTable(async (key) => {
      const [kind = '', namespace = '', name = ''] = key.split('/')
      const place = { namespace, name }
      const [deployment, statefulSet] = [deployments.get(place), statefulSets.get(place)]
      const daemonSet = daemonSets.get(place)
      if (kind === 'Deployment') return deployment && { namespace, card: replicatedCard(kind, deployment) }
      if (kind === 'StatefulSet') return statefulSet && { namespace, card: replicatedCard(kind, statefulSet) }
      return daemonSet && { namespace, card: daemonSetCard(daemonSet) }
    }),
    requests: cardTable(async (name) => {
      const request = requests.get({ namespace: '', name })
      const card = request && requestCard(request, commonNameOf)
      return card && { namespace: '', card }
    }),
  }
  const informers = [nodes, pods, events, deployments, statefulSets, daemonSets, requests]
  const loops: readonly Loop[] = informers.map(({ run }, at) => ({ name: `dashboard-${at}`, run }))
  return {
    tables,
    nodes: nodes.all,
    listed: Promise.all(informers.map(({ listed }) => listed)),
    run: (signal) => runLoops(loops, signal, log),
  }
}

type Keyed = { readonly metadata: { readonly namespace?: string; readonly name?: string } }

/** As `cardKeys` names its card. */
function keyOf(object: Keyed | undefined): string {
  const { namespace = '', name = '' } = object?.metadata ?? {}
  return `${namespace}/${name}`
}

function nameOf(object: Keyed | undefined): string {
  return object?.metadata.name ?? ''
}

function keyIn(key: string) {
  const slash = key.indexOf('/')
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
