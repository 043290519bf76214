/** The nodes of a simulated fleet: they send heartbeats, run the pods that are bound to them, and can fall silent. */
import type { PodStatus } from '../../api/pod.ts'
import { aNode } from '../../api/testing/builders.ts'
import { informer } from '../../broker-controller/store/informer.ts'
import type { Store, StoredPod } from '../../broker-controller/store/store.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { FakeClock } from '../../daemon/testing/fake-clock.ts'
import type { LeaseFeed } from './lease-feed.ts'

export type SimulatedNodesNeeds = {
  readonly store: Store
  readonly clock: FakeClock
  readonly log: Log
  readonly leases: LeaseFeed
  /** Between two heartbeats of a node. */
  readonly beatSeconds: number
  /** How long the next message of a node is under way, in milliseconds; undefined: all arrive at once. */
  readonly delayMs: (() => number) | undefined
}

/** A pod that left its node, as the API shows it. */
export type Departure = {
  readonly pod: string
  readonly node: string
  readonly atMs: number
  readonly silentMs: number
}

export interface SimulatedNodes {
  readonly names: readonly string[]
  readonly loop: Loop
  /** Registers the nodes; each reports at once. */
  join(): Promise<void>
  /** One second: heartbeats of those that are due, and what their pods do. */
  tick(): Promise<void>
  silence(names: readonly string[]): void
  revive(names: readonly string[]): Promise<void>
  /** No controller is there, until `connect`: heartbeats are lost, and what pods did is reported afterwards. */
  disconnect(): void
  connect(): void
  /** Pods that were deleted since the last call. */
  departures(): readonly Departure[]
  /** Pods that were seen on two nodes: the list must stay empty. */
  readonly moved: readonly string[]
}

export function simulatedNodes(
  { store, clock, log, leases, beatSeconds, delayMs }: SimulatedNodesNeeds,
  zones: readonly (readonly [name: string, zone: string])[],
): SimulatedNodes {
  const silentSince = new Map<string, number>()
  const changed = new Map<string, StoredPod>()
  const nodeOfPod = new Map<string, string>()
  const departed: Departure[] = []
  const moved: string[] = []
  let seconds = 0
  let isConnected = true

  const messages = messagesUnderWay(delayMs)
  const send = (arrive: Arrival) => messages.send(seconds, arrive)

  const pods = informer({ store, clock, log }, 'pods', (present, previous) => {
    const pod = present ?? previous
    if (pod === undefined) return
    const { uid, name } = pod.metadata
    const node = pod.spec.nodeName ?? ''
    if (present === undefined) {
      nodeOfPod.delete(uid)
      return void changed.delete(uid)
    }
    const before = nodeOfPod.get(uid)
    if (before !== undefined && before !== node) moved.push(name)
    if (node !== '') nodeOfPod.set(uid, node)
    if (present.metadata.deletionTimestamp !== undefined && previous?.metadata.deletionTimestamp === undefined) {
      const nowMs = clock.monotonicMs()
      departed.push({ pod: name, node, atMs: nowMs, silentMs: nowMs - (silentSince.get(node) ?? nowMs) })
    }
    if (node !== '') changed.set(uid, present)
  })

  const report = (name: string) => reportReady({ store, clock }, name)

  /** The controller asks a node for its status whose Ready condition stays Unknown while heartbeats arrive. */
  const beat = async (name: string) => {
    leases.renew(name)
    if (delayMs === undefined) return // then no heartbeat is late
    const node = await store.get('nodes', { namespace: '', name })
    const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready')
    if (ready?.status === 'Unknown' && !silentSince.has(name)) await send(() => report(name))
  }

  const act = (pod: StoredPod) => runPod({ store, clock }, pod)

  const exchange = async (arriving: ReturnType<typeof messages.take>) => {
    for (const arrive of arriving) await arrive()
    for (let index = seconds % beatSeconds; index < zones.length; index += beatSeconds) {
      const [name] = zones[index] ?? ['']
      if (!silentSince.has(name)) await send(() => beat(name))
    }
    for (const [uid, pod] of changed) {
      changed.delete(uid)
      // What it missed it finds when it is back: `revive` looks at all its pods.
      if (!silentSince.has(pod.spec.nodeName ?? '')) await send(() => act(pod))
    }
  }

  return {
    names: zones.map(([name]) => name),
    loop: { name: 'simulated-nodes', run: pods.run },
    async join() {
      for (const [name, zone] of zones) {
        const labels = { 'topology.kubernetes.io/zone': zone, 'kubernetes.io/hostname': name }
        await store.create('nodes', withoutVersion(aNode({ name, labels })))
        leases.renew(name)
      }
    },
    async tick() {
      seconds += 1
      const arriving = messages.take(seconds)
      if (isConnected) await exchange(arriving)
      await clock.advance(1_000)
    },
    silence(names) {
      for (const name of names) if (!silentSince.has(name)) silentSince.set(name, clock.monotonicMs())
    },
    async revive(names) {
      for (const name of names) {
        silentSince.delete(name)
        leases.renew(name)
        await report(name)
      }
      // Its agent reports all pods when it connects.
      const back = new Set(names)
      for (const pod of pods.all()) if (back.has(pod.spec.nodeName ?? '')) changed.set(pod.metadata.uid, pod)
    },
    disconnect() {
      isConnected = false
    },
    connect() {
      isConnected = true
      for (const pod of pods.all()) if ((pod.spec.nodeName ?? '') !== '') changed.set(pod.metadata.uid, pod)
    },
    departures: () => departed.splice(0),
    moved,
  }
}

/** What a node reports that has no problem. */
async function reportReady(
  { store, clock }: Pick<SimulatedNodesNeeds, 'store' | 'clock'>,
  name: string,
): Promise<void> {
  const node = await store.get('nodes', { namespace: '', name })
  if (node === undefined) return
  const now = rfc3339(clock.wallMs())
  const conditions = (aNode({ name }).status?.conditions ?? []).map((condition) => {
    const known = node.status?.conditions?.find(({ type }) => type === condition.type)
    const lastTransitionTime = known?.status === condition.status ? (known.lastTransitionTime ?? now) : now
    return { ...condition, lastHeartbeatTime: now, lastTransitionTime }
  })
  await store.updateStatus('nodes', { ...node, status: { ...node.status, conditions } })
}

/** A bound pod runs, and one that is asked to leave is gone. Of a silent node nothing happens. */
async function runPod({ store, clock }: Pick<SimulatedNodesNeeds, 'store' | 'clock'>, pod: StoredPod): Promise<void> {
  const { name, namespace = '', uid, deletionTimestamp } = pod.metadata
  if (deletionTimestamp !== undefined) {
    await store.delete('pods', { namespace, name }, { uid }).catch(() => undefined)
  } else if (pod.status?.conditions?.find(({ type }) => type === 'Ready')?.status !== 'True') {
    const present = await store.get('pods', { namespace, name })
    if (present?.metadata.uid !== uid) return
    await store.updateStatus('pods', { ...present, status: { ...present.status, ...running(clock.wallMs()) } })
  }
}

type Arrival = () => Promise<void> | void

/** Messages of nodes, by the second in which they arrive. */
function messagesUnderWay(delayMs: SimulatedNodesNeeds['delayMs']) {
  const underWay = new Map<number, Arrival[]>()
  return {
    send(second: number, arrive: Arrival): Promise<void> | void {
      const late = delayMs === undefined ? 0 : Math.floor(delayMs() / 1_000)
      if (late === 0) return arrive()
      const same = underWay.get(second + late)
      if (same === undefined) underWay.set(second + late, [arrive])
      else same.push(arrive)
    },
    take(second: number): readonly Arrival[] {
      const arriving = underWay.get(second) ?? []
      underWay.delete(second)
      return arriving
    },
  }
}

function running(wallMs: number): PodStatus {
  const condition = { type: 'Ready', status: 'True', lastTransitionTime: rfc3339(wallMs) } as const
  return { phase: 'Running', conditions: [condition] }
}

function withoutVersion<T extends { readonly metadata: { readonly resourceVersion?: string; readonly uid?: string } }>(
  object: T,
) {
  const { resourceVersion: _version, uid: _uid, ...metadata } = object.metadata
  return { ...object, metadata }
}
