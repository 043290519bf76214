/**
 * Loop: the addresses of Services of the type LoadBalancer, and the node that answers for each. A pass decides for all of them together
 * from what the Services have, so the next one completes a pass that was interrupted, and repairs what does not fit together.
 */
import { isDeepStrictEqual } from 'node:util'
import { allNodes, loadBalancerNodeAnnotation } from '../../../api/network/load-balancer.ts'
import type { IPFamily } from '../../../api/text/ip-address.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import { yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { informer, keyText } from '../../store/informer.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import { type AddressPool, poolHas } from './address-pool.ts'
import {
  type BalancedPortKey,
  type BalancedService,
  type Balancing,
  balancedService,
  isBalanced,
  isForeign,
  notBalanced,
} from './balanced-services.ts'
import { type BalancerNode, balancerNode } from './balancer-nodes.ts'
import { type BalancerNeeds, balancerWrites } from './balancer-writes.ts'
import { endpointNodes } from './endpoint-nodes.ts'
import { balanceByNodes } from './node-balancing.ts'
import { balanceByPool } from './pool-balancing.ts'
import { hostPortUses, nodePortsOf } from './port-uses.ts'

/** Where addresses come from. `none`: what was assigned before is withdrawn. */
export type LoadBalancerSettings =
  | { readonly mode: 'pool'; readonly pool: AddressPool }
  | { readonly mode: 'nodes'; readonly keptPorts: ReadonlySet<BalancedPortKey> }
  | { readonly mode: 'none' }

/** Changes of one moment are one pass: the nodes behind an access point are lost together. */
const collectMs = 50
const onlyKey = 'all'

/** `ipv6`: pods of the fleet have addresses of both families; otherwise nodes forward nothing in IPv6, whatever a Service has among its own. */
export function loadBalancerController(needs: BalancerNeeds, settings: LoadBalancerSettings, ipv6 = false): Loop {
  return { name: 'load-balancers', run: (signal) => runLoadBalancers({ ...needs, ipv6 }, settings, signal) }
}

type StoredService = StoredObject<'services'>

/** A Service that has to do with addresses of load balancers. */
type Part = {
  readonly key: string
  readonly service: StoredService
  readonly facts: BalancedService
  readonly isOurs: boolean
  /** It had an address. One that is being deleted has it until it is withdrawn. */
  readonly isWithdrawn: boolean
}

function othersFacts({ facts, isWithdrawn }: Part): BalancedService {
  return isWithdrawn ? facts : sharingNothing(facts)
}

async function runLoadBalancers(
  needs: BalancerNeeds & { readonly ipv6: boolean },
  settings: LoadBalancerSettings,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = needs
  const queue = workQueue(clock)
  const notify = () => queue.addAfter(onlyKey, collectMs)
  const watched = watchFacts(needs, settings, notify)
  const writes = balancerWrites(needs)
  /** The node of each address as it was written last, in case a client replaces the Service without its annotation. */
  const lastNodes = new Map<string, string>()
  const services = informer(needs, 'services', (present, previous) => {
    if (present === undefined && previous !== undefined) {
      lastNodes.delete(keyText(previous.metadata))
      writes.forget(keyText(previous.metadata))
    }
    notify()
  })

  const partOf = (service: StoredService): Part | undefined => {
    const isGiven = service.spec?.type === 'LoadBalancer'
    if (!isGiven && !isMarked(service)) return undefined
    const key = keyText(service.metadata)
    const facts = withLastNode(
      balancedService(key, service, (family) => watched.endpointsOf(key, family), needs.ipv6),
      lastNodes,
    )
    const isOurs = isBalanced(service) && !isForeign(facts, (ip) => watched.mayGive(ip))
    const isWithdrawn = isMarked(service) || isLeaving(service, facts.ips.some(watched.mayGive))
    return { key, service, facts, isOurs, isWithdrawn }
  }
  const write = async ({ key, service }: Part, balancing: Balancing) => {
    if (settings.mode === 'none' && !isMarked(service)) return
    if (balancing.node !== undefined && balancing.node !== allNodes) lastNodes.set(key, balancing.node)
    await writes.write(key, service, balancing)
    await yieldTurn()
  }
  const reconcile = async (): Promise<undefined> => {
    services.catchUp()
    const parts: Part[] = []
    for (const service of services.all()) {
      const part = partOf(service)
      if (part === undefined) continue
      parts.push(part)
      await yieldTurn()
    }
    const balanced = parts.filter(({ isOurs }) => isOurs).map(({ facts }) => facts)
    const others = parts.filter(({ isOurs }) => !isOurs).map(othersFacts)
    const decided = decide(settings, watched, balanced, { others, services: services.all() })
    for (const part of parts.filter(({ isOurs, isWithdrawn }) => isOurs || isWithdrawn)) {
      await write(part, decided.get(part.key) ?? notBalanced)
    }
  }

  const work = async (until: AbortSignal) => {
    await Promise.all([services.listed, watched.listed])
    queue.add(onlyKey)
    if (!until.aborted) await runController({ name: 'load-balancers', reconcile }, queue, log, until)
  }
  const loops = [{ name: 'services', run: services.run }, ...watched.loops, { name: 'work', run: work }]
  await runLoops(loops, signal, log)
}

function decide(
  settings: LoadBalancerSettings,
  { nodes, hostPortsByNode }: Watched,
  balanced: readonly BalancedService[],
  known: { readonly others: readonly BalancedService[]; readonly services: Iterable<StoredService> },
): ReadonlyMap<string, Balancing> {
  switch (settings.mode) {
    case 'pool':
      return balanceByPool(balanced, nodes(), settings.pool, known.others)
    case 'nodes': {
      const nodePorts = new Map<BalancedPortKey, string>()
      for (const service of known.services) {
        for (const port of nodePortsOf(service)) nodePorts.set(port, keyText(service.metadata))
      }
      return balanceByNodes(balanced, nodes(), { kept: settings.keptPorts, nodePorts, hostPorts: hostPortsByNode() })
    }
    case 'none':
      return new Map()
  }
}

function withLastNode(service: BalancedService, lastNodes: ReadonlyMap<string, string>): BalancedService {
  const node = service.node ?? lastNodes.get(service.key)
  return node === undefined || service.ips.length === 0 ? service : { ...service, node }
}

/** Another program gave it its addresses: this controller gives them to no other Service. */
function sharingNothing({ sharing: _, ...service }: BalancedService): BalancedService {
  return service
}

/** A client may have removed the annotation before it deleted the Service. */
function isLeaving({ metadata, spec }: StoredService, hasOurs: boolean): boolean {
  return metadata.deletionTimestamp !== undefined && !spec?.loadBalancerClass && hasOurs
}

/** This controller has written its status. */
function isMarked({ metadata }: StoredService): boolean {
  return metadata.annotations?.[loadBalancerNodeAnnotation] !== undefined
}

type Watched = {
  readonly loops: readonly Loop[]
  readonly listed: Promise<unknown>
  readonly nodes: () => readonly BalancerNode[]
  readonly hostPortsByNode: () => ReadonlyMap<string, ReadonlySet<BalancedPortKey>>
  readonly endpointsOf: (key: string, family: IPFamily) => ReadonlySet<string>
  /** This controller gives such an address to Services. */
  readonly mayGive: (ip: string) => boolean
}

type WatchNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log; readonly ipv6: boolean }

/** What decisions need besides the Services. */
function watchFacts(needs: WatchNeeds, settings: LoadBalancerSettings, notify: () => void): Watched {
  const known = new Map<string, BalancerNode>()
  const ports = hostPortUses()
  const endpoints = endpointNodes()
  if (settings.mode === 'none') return { ...nothing, mayGive: () => false }
  const nodes = informer(needs, 'nodes', (present, previous) => {
    const name = (present ?? previous)?.metadata.name ?? ''
    const node = present && balancerNode(present, needs.ipv6)
    if (isDeepStrictEqual(node, known.get(name))) return
    if (node === undefined) known.delete(name)
    else known.set(name, node)
    notify()
  })
  const slices = informer(needs, 'endpointslices', (present, previous) => {
    if (endpoints.put(present, previous)) notify()
  })
  const pods =
    settings.mode === 'nodes'
      ? [
          informer(needs, 'pods', (present, previous) => {
            if (ports.put((present ?? previous)?.metadata.uid ?? '', present)) notify()
          }),
        ]
      : []
  return {
    loops: [nodes, slices, ...pods].map(({ run }, index) => ({ name: `load-balancer-facts-${index}`, run })),
    listed: Promise.all([nodes, slices, ...pods].map(({ listed }) => listed)),
    nodes: () => [...known.values()],
    hostPortsByNode: ports.byNode,
    endpointsOf: endpoints.of,
    mayGive: (ip) =>
      settings.mode === 'pool'
        ? poolHas(settings.pool, ip)
        : [...known.values()].some(({ address, ipv6 }) => address === ip || ipv6 === ip),
  }
}

const nothing: Omit<Watched, 'mayGive'> = {
  loops: [],
  listed: Promise.resolve(),
  nodes: () => [],
  hostPortsByNode: () => new Map(),
  endpointsOf: () => new Set(),
}
