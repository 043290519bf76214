/** The nodes, pods, backups and rollout of the fleet, as far as Home Assistant shows them: counted with each change, marked where something changed. */
import { backupFailureOf, lastBackupOf } from '../../../api/backups/volume-backup.ts'
import { isPausedByOperator, isRolloutMap, readStatus } from '../../../api/node/agent-rollout.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { isReady } from '../../controllers/node-lifecycle/zones.ts'
import { readRollout } from '../../controllers/rollouts/rollout-object.ts'
import { informer } from '../../store/informer.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import { mayHaveProblem, problemsOfMap, problemsOfNode, problemsOfPod } from '../notifications/problems.ts'
import { type CommittedVersion, committedVersions } from './committed-versions.ts'
import { deviceID, fleetDevice } from './device-ids.ts'
import type { WatchedRollout } from './fleet-update.ts'
import type { FleetCounts } from './machine-state.ts'

export type WatchedFleetNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

export interface WatchedFleet {
  /** Resolves when all objects were counted once, or when `run` of a loop ends before. */
  readonly listed: Promise<unknown>
  nodeNames(): readonly string[]
  /** Undefined: there is no such node. */
  node(id: string): StoredObject<'nodes'> | undefined
  /** IDs of all devices of nodes. */
  ids(): Iterable<string>
  podsOf(nodeName: string): readonly Pod[]
  podsRunning(nodeName: string): number
  counts(): FleetCounts
  /** The rollout of the agent; undefined: there is none, or it cannot be used. */
  rollout(): WatchedRollout | undefined
  /** Version of its object in the store; undefined: there is none. */
  rolloutRevision(): string | undefined
  /** The oldest version of the agent that a connected node runs. */
  installed(): CommittedVersion | undefined
  /** One listener: the device of a node, or of the fleet, may have other values, or be gone. */
  onChange(listener: (id: string) => void): void
  readonly loops: readonly Loop[]
}

/** What a pod adds to the counts. */
type PodShare = { readonly running: 0 | 1; readonly waiting: 0 | 1; readonly alerts: number }

const noShare: PodShare = { running: 0, waiting: 0, alerts: 0 }

export function watchedFleet(needs: WatchedFleetNeeds): WatchedFleet {
  const names = new Map<string, string>()
  /** IDs of existing nodes, by name: a pod's change must not compute a hash. */
  const ids = new Map<string, string>()
  const running = new Map<string, number>()
  const podsByNode = new Map<string, Map<string, Pod>>()
  const totals = { ready: 0, total: 0, podsRunning: 0, podsWaiting: 0, alerts: 0 }
  const backups: { volumes: number; failed: number; lastMs: number | undefined } = {
    ...{ volumes: 0, failed: 0, lastMs: undefined },
  }
  const versions = committedVersions()
  let changed: (id: string) => void = () => {}

  const nodes = informer(needs, 'nodes', (now, before) => {
    const name = (now ?? before)?.metadata.name ?? ''
    const id = ids.get(name) ?? deviceID(name)
    if (now === undefined) {
      names.delete(id)
      ids.delete(name)
    } else {
      names.set(id, name)
      ids.set(name, id)
    }
    for (const [one, sign] of [[before, -1] as const, [now, 1] as const]) {
      if (one === undefined) continue
      totals.total += sign
      totals.ready += isReady(one) ? sign : 0
      totals.alerts += sign * problemsOfNode(one).length
      versions.count(one, sign)
    }
    changed(id)
  })
  const countPod = (pod: Pod | undefined, sign: 1 | -1) => {
    const share = pod === undefined ? noShare : shareOf(pod)
    totals.podsRunning += sign * share.running
    totals.podsWaiting += sign * share.waiting
    totals.alerts += sign * share.alerts
    const node = pod?.spec.nodeName
    if (pod === undefined || !node) return
    add(running, node, sign * share.running)
    place(podsByNode, node, pod, sign)
    const id = ids.get(node)
    if (share.running > 0 && id !== undefined) changed(id)
  }
  const pods = informer(needs, 'pods', (now, before) => {
    countPod(before, -1)
    countPod(now, 1)
  })
  const countBackups = (volume: StoredObject<'persistentvolumes'> | undefined, sign: 1 | -1) => {
    const [last, failure] = volume === undefined ? [] : [lastBackupOf(volume), backupFailureOf(volume)]
    if (last === undefined && failure === undefined) return false
    backups.volumes += sign
    backups.failed += failure === undefined ? 0 : sign
    const ms = Date.parse(last?.time ?? '')
    // It stays when its volume is gone: the backup was made.
    if (ms > (backups.lastMs ?? Number.NEGATIVE_INFINITY)) backups.lastMs = ms
    return true
  }
  const volumes = informer(needs, 'persistentvolumes', (now, before) => {
    const wasCounted = countBackups(before, -1)
    const isCounted = countBackups(now, 1)
    if (wasCounted || isCounted) changed(fleetDevice)
  })
  const { maps, rollout, rolloutRevision } = watchedRollout(needs, (alerts) => {
    totals.alerts += alerts
    changed(fleetDevice)
  })
  return {
    listed: Promise.all([nodes.listed, pods.listed, volumes.listed, maps.listed]),
    nodeNames: () => [...names.values()],
    node: (id) => {
      const name = names.get(id)
      return name === undefined ? undefined : nodes.get({ namespace: '', name })
    },
    ids: () => names.keys(),
    podsOf: (node) => [...(podsByNode.get(node)?.values() ?? [])],
    podsRunning: (node) => running.get(node) ?? 0,
    counts: () => {
      const { volumes: count, failed, lastMs } = backups
      return { ...totals, backups: count > 0 || lastMs !== undefined ? { failed, lastMs } : undefined }
    },
    rollout,
    rolloutRevision,
    installed: () => versions.lowest(),
    onChange(listener) {
      changed = listener
    },
    loops: [
      { name: 'home-assistant-nodes', run: nodes.run },
      { name: 'home-assistant-pods', run: pods.run },
      { name: 'home-assistant-volumes', run: volumes.run },
      { name: 'home-assistant-rollout', run: maps.run },
    ],
  }
}

/** `changed`: a map of the fleet is another one, with so many alerts more or fewer. */
function watchedRollout(needs: WatchedFleetNeeds, changed: (alerts: number) => void) {
  let rollout: WatchedRollout | undefined
  let revision: string | undefined
  const maps = informer(needs, 'configmaps', (now, before) => {
    const map = now ?? before
    if (map === undefined || !mayHaveProblem(map)) return
    if (isRolloutMap(map)) {
      const read = now && readRollout(now)
      revision = now?.metadata.resourceVersion
      rollout =
        now !== undefined && typeof read === 'object'
          ? { ...read, status: readStatus(now), isPausedByOperator: isPausedByOperator(now) }
          : undefined
    }
    const alertsOf = (one: typeof now) => (one === undefined ? 0 : problemsOfMap(one).length)
    changed(alertsOf(now) - alertsOf(before))
  })
  return { maps, rollout: () => rollout, rolloutRevision: () => revision }
}

function shareOf(pod: Pod): PodShare {
  const phase = pod.status?.phase ?? 'Pending'
  return {
    running: phase === 'Running' ? 1 : 0,
    waiting: phase === 'Pending' ? 1 : 0,
    alerts: problemsOfPod(pod).length,
  }
}

function add(counts: Map<string, number>, key: string, by: number): void {
  const sum = (counts.get(key) ?? 0) + by
  if (sum === 0) counts.delete(key)
  else counts.set(key, sum)
}

function place(byNode: Map<string, Map<string, Pod>>, node: string, pod: Pod, sign: 1 | -1): void {
  const pods = byNode.get(node) ?? new Map<string, Pod>()
  const key = `${pod.metadata.namespace}/${pod.metadata.name}`
  if (sign > 0) pods.set(key, pod)
  else pods.delete(key)
  if (pods.size === 0) byNode.delete(node)
  else byNode.set(node, pods)
}
