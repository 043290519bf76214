/** A fleet that lives in the store by a clock that the test moves: nodes that heartbeat, fall silent and come back. */
import { isDeepStrictEqual } from 'node:util'
import type { Node, NodeCondition } from '../../api/node.ts'
import type { Pod } from '../../api/pod.ts'
import { aLease, aNode, aPod, type NodeOverrides, type PodOverrides } from '../../api/testing/builders.ts'
import { rfc3339, rfc3339Micro } from '../../daemon/clock.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { type FakeClock, fakeClock } from '../../daemon/testing/fake-clock.ts'
import { type QuietLog, quietLog } from '../../daemon/testing/quiet-log.ts'
import { type EventRecorder, eventRecorder } from '../store/event-recorder.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { Store, StoredObject } from '../store/store.ts'

export interface Fleet {
  readonly store: Store
  readonly clock: FakeClock
  readonly log: QuietLog
  readonly events: EventRecorder
  /** Registers Ready nodes that heartbeat every ten seconds from now on. */
  join(...nodes: readonly NodeOverrides[]): Promise<void>
  run(pod: PodOverrides): Promise<void>
  /** The machine dies, or its cable is pulled: nothing is received from it any more. */
  silence(...names: readonly string[]): void
  /** It is back: heartbeats, and reports at once that it is well; after a reboot under the id of a new boot. */
  revive(...names: readonly string[]): Promise<void>
  reboot(...names: readonly string[]): Promise<void>
  /** The broker noticed what became of the connection. `address`: where the node connects from. */
  connection(name: string, state: 'online' | 'lost' | 'goodbye', address?: string): Promise<void>
  /** The machine falls silent after announcing the reason and the seconds. */
  goodbye(name: string, reason: string, expectedBackSeconds?: number): Promise<void>
  /** What the controller forgets when its process ends: leases are in memory only. */
  forgetLeases(): Promise<void>
  report(name: string, ready: NodeCondition['status']): Promise<void>
  /** Starts these loops; the answer ends them. */
  start(...loops: readonly Loop[]): () => Promise<void>
  /** Lets time pass, with its heartbeats. `strideSeconds`: this many at a time, every node beats once in each. */
  pass(seconds: number, strideSeconds?: number): Promise<void>
  /** Pods that were asked to leave. */
  leaving(): Promise<readonly string[]>
  /** Nodes with a NoExecute taint. */
  tainted(): Promise<readonly string[]>
  node(name: string): Promise<StoredObject<'nodes'>>
  pod(name: string): Promise<StoredObject<'pods'> | undefined>
  /** Ready of the node, then its taints as `key:Effect` without the domain. */
  state(name: string): Promise<string>
  reasons(name: string): Promise<readonly string[]>
}

const beatSeconds = 10
const addressKey = 'bramble.dev/address'

export function fleet(t: { fail(message: string): unknown }, ...expectedErrors: readonly string[]): Fleet {
  const clock = fakeClock()
  const log = quietLog(t, ...expectedErrors)
  const store = memoryStore({ clock })
  const events = eventRecorder({ store, clock })
  const beating = new Map<string, number>()
  let seconds = 0
  let boots = 0

  const beat = async (name: string, annotations?: { readonly [key: string]: string }) => {
    const key = { namespace: 'kube-node-lease', name }
    const before = await store.get('leases', key)
    const fresh = aLease({ name, renewTime: rfc3339Micro(clock.wallMs()) })
    if (before === undefined)
      await store.create('leases', { ...fresh, metadata: { ...key, ...(annotations && { annotations }) } })
    else {
      const metadata = annotations
        ? { ...before.metadata, annotations: { ...kept(before.metadata.annotations), ...annotations } }
        : before.metadata
      await store.update('leases', { ...before, metadata, spec: annotations ? before.spec : fresh.spec })
    }
  }

  const node = async (name: string) => {
    const found = await store.get('nodes', { namespace: '', name })
    if (found === undefined) throw new Error(`No node ${name}`)
    return found
  }

  const report = async (name: string, ready: NodeCondition['status'], bootID?: string) => {
    const before = await node(name)
    const now = rfc3339(clock.wallMs())
    const reported = aNode({ name, ready }).status?.conditions ?? []
    const conditions = reported.map((condition) => {
      const known = before.status?.conditions?.find(({ type }) => type === condition.type)
      const lastTransitionTime = known?.status === condition.status ? (known.lastTransitionTime ?? now) : now
      return { ...condition, lastHeartbeatTime: now, lastTransitionTime }
    })
    await store.updateStatus('nodes', booted(withConditions(before, conditions), bootID))
  }

  const revive = async (name: string, bootID?: string) => {
    beating.set(name, seconds % beatSeconds)
    await beat(name, { 'bramble.dev/connection': 'online' })
    await beat(name)
    await report(name, 'True', bootID)
  }

  return {
    store,
    clock,
    log,
    events,
    async join(...nodes) {
      for (const over of nodes) {
        const { metadata, ...fresh } = aNode(over)
        const { uid: _uid, resourceVersion: _version, creationTimestamp: _born, ...given } = metadata
        await store.create('nodes', { ...fresh, metadata: given })
        beating.set(metadata.name, beating.size % beatSeconds)
        await beat(metadata.name)
      }
      await clock.settle()
    },
    async run(over) {
      const pod = aPod({ phase: 'Running', status: readyStatus, ...over })
      await store.create('pods', { ...pod, metadata: withoutStamps(pod) })
      await clock.settle()
    },
    silence(...names) {
      for (const name of names) beating.delete(name)
    },
    async revive(...names) {
      for (const name of names) await revive(name)
      await clock.settle()
    },
    async reboot(...names) {
      for (const name of names) await revive(name, `boot-${name}-${++boots}`)
      await clock.settle()
    },
    async connection(name, state, address) {
      await beat(name, {
        'bramble.dev/connection': state,
        ...(address !== undefined && { [addressKey]: address }),
      })
      await clock.settle()
    },
    async goodbye(name, reason, expectedBackSeconds) {
      beating.delete(name)
      await beat(name, {
        'bramble.dev/connection': 'goodbye',
        'bramble.dev/connection-reason': reason,
        ...(expectedBackSeconds !== undefined && { 'bramble.dev/expected-back-seconds': `${expectedBackSeconds}` }),
      })
      await clock.settle()
    },
    async forgetLeases() {
      const { items } = await store.list('leases')
      for (const { metadata } of items) {
        await store.delete('leases', { namespace: metadata.namespace ?? '', name: metadata.name })
      }
      await clock.settle()
    },
    async report(name, ready) {
      await report(name, ready)
      await clock.settle()
    },
    start(...loops) {
      const stop = new AbortController()
      const ended = runLoops(loops, stop.signal, log)
      return async () => {
        stop.abort()
        await ended
      }
    },
    async pass(total, stride = 1) {
      for (const until = seconds + total; seconds < until; seconds += stride) {
        for (const [name, at] of beating) if (stride > 1 || at === seconds % beatSeconds) await beat(name)
        await clock.advance(stride * 1000)
      }
    },
    async leaving() {
      const { items } = await store.list('pods')
      return items.flatMap(({ metadata }) => (metadata.deletionTimestamp === undefined ? [] : [metadata.name]))
    },
    async tainted() {
      const { items } = await store.list('nodes')
      return items
        .filter(({ spec }) => spec?.taints?.some(({ effect }) => effect === 'NoExecute'))
        .map(({ metadata }) => metadata.name)
    },
    node,
    pod: (name) => store.get('pods', { namespace: 'default', name }),
    async state(name) {
      const { status, spec } = await node(name)
      const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status ?? 'nothing'
      return [
        ready,
        ...(spec?.taints ?? []).map(({ key, effect }) => `${key.split('/').at(-1)}:${effect}`).sort(),
      ].join(' ')
    },
    async reasons(name) {
      const { items } = await store.list('events')
      return items.filter(({ involvedObject }) => involvedObject.name === name).map(({ reason = '' }) => reason)
    },
  }
}

const readyStatus: Pod['status'] = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }

function withConditions(node: StoredObject<'nodes'>, conditions: readonly NodeCondition[]): Node {
  if (isDeepStrictEqual(node.status?.conditions, conditions)) return node
  return { ...node, status: { ...node.status, conditions } }
}

function withoutStamps({ metadata }: StoredObject<'pods'>) {
  const { uid: _uid, resourceVersion: _version, creationTimestamp: _born, ...given } = metadata
  return given
}

function booted(node: Node, bootID: string | undefined): Node {
  const nodeInfo = node.status?.nodeInfo
  return bootID === undefined || nodeInfo === undefined
    ? node
    : { ...node, status: { ...node.status, nodeInfo: { ...nodeInfo, bootID } } }
}

/** What a lease still holds when its connection changes. */
function kept(annotations: { readonly [name: string]: string } | undefined): { readonly [name: string]: string } {
  const address = annotations?.[addressKey]
  return address === undefined ? {} : { [addressKey]: address }
}
