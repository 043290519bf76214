/** The pools of the fleet, its claims and volumes, and what is in the trash, from objects and from what nodes report. Pure. */
import {
  backupFailureOf,
  backupNowAnnotation,
  backupOf,
  lastBackupOf,
  restoreFailureAnnotation,
  restoreOf,
} from '../../../api/backups/volume-backup.ts'
import type { Node } from '../../../api/node.ts'
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import type { Pod } from '../../../api/pod.ts'
import { quantityToNumber, tryParseQuantity } from '../../../api/quantity.ts'
import type { FleetPool, FleetTrash, FleetVolume, FleetVolumes } from '../../../api/storage/fleet-volumes.ts'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../../api/storage/persistent-volume-claim.ts'
import { claimsOfPod } from '../../../api/storage/pod-claims.ts'
import { labelledPools, reportedPools } from '../../../api/storage/pools.ts'
import { trashReportSeconds } from '../../../api/storage/volume-messages.ts'
import { moveOf, moveToAnnotation } from '../../../api/storage/volume-move.ts'
import { poolOfVolume } from '../../../api/storage/volume-place.ts'
import type { StorageReport } from '../../usage/storage-board.ts'

export type FleetVolumeFacts = {
  readonly nodes: readonly Node[]
  readonly volumes: readonly PersistentVolume[]
  readonly claims: readonly PersistentVolumeClaim[]
  readonly pods: readonly Pod[]
  /** What the node reported since the controller started. */
  readonly reportOf: (node: string) => Pick<StorageReport, 'pools' | 'volumes' | 'trash'> | undefined
  /** Bytes copied so far of volumes that are being moved, by their UID. */
  readonly copiedBytes?: ReadonlyMap<string, number>
}

type Place = { readonly node: Node; readonly path: string | undefined; readonly name: string | undefined }

/** Iterates by object, so that the caller can yield; returns all rows, sorted. */
export function* fleetVolumes({
  nodes,
  volumes,
  claims,
  pods,
  reportOf,
  copiedBytes = new Map(),
}: FleetVolumeFacts): Generator<void, FleetVolumes> {
  const places = placesOf(nodes)
  const used = new Map<string, number>()
  for (const { metadata } of nodes) {
    for (const { uid, usedBytes } of reportOf(metadata.name ?? '')?.volumes ?? []) used.set(uid, usedBytes)
    yield
  }
  const users = yield* usersOf(pods)
  const rows: FleetVolume[] = []
  const counts = new Map<string, number>()
  for (const volume of volumes) {
    yield
    const pool = poolOfVolume(volume)
    if (pool !== undefined) counts.set(pool, (counts.get(pool) ?? 0) + 1)
    rows.push(volumeRow(volume, { place: places.get(pool ?? ''), users, used, copiedBytes }))
  }
  const names = new Set(volumes.map(({ metadata }) => metadata.name))
  for (const claim of claims) {
    yield
    if (!names.has(claim.spec?.volumeName)) rows.push(claimRow(claim, users))
  }
  return {
    pools: poolRows({ places, counts, reportOf }),
    volumes: rows.sort((a, b) => order(a.claim ?? a.volume, b.claim ?? b.volume)),
    trash: trashRows(places, reportOf),
  }
}

/** The names of the pods that use a claim, by its key. */
function* usersOf(pods: FleetVolumeFacts['pods']): Generator<void, ReadonlyMap<string, readonly string[]>> {
  const users = new Map<string, string[]>()
  for (const pod of pods) {
    yield
    if (isFinished(pod)) continue
    for (const { name } of claimsOfPod(pod)) {
      const claim = `${pod.metadata.namespace}/${name}`
      users.set(claim, [...(users.get(claim) ?? []), pod.metadata.name ?? ''])
    }
  }
  return users
}

/** By the id of the pool: the node that has its label. */
function placesOf(nodes: readonly Node[]): ReadonlyMap<string, Place> {
  return new Map(
    nodes.flatMap((node) => {
      const reported = new Map(reportedPools(node).map((pool) => [pool.id, pool]))
      return labelledPools(node).map((id): [string, Place] => {
        const { path, name } = reported.get(id) ?? {}
        return [id, { node, path, name }]
      })
    }),
  )
}

type RowFacts = {
  readonly place: Place | undefined
  readonly users: ReadonlyMap<string, readonly string[]>
  readonly used: ReadonlyMap<string, number>
  readonly copiedBytes: ReadonlyMap<string, number>
}

function volumeRow(volume: PersistentVolume, { place, users, used, copiedBytes }: RowFacts): FleetVolume {
  const { name = '', uid = '', deletionTimestamp } = volume.metadata
  const { claimRef, capacity = {}, storageClassName, local, hostPath } = volume.spec ?? {}
  const claim = claimRef?.name && `${claimRef.namespace ?? ''}/${claimRef.name}`
  const [pool, node] = [poolOfVolume(volume), place?.node.metadata.name ?? hostnameOf(volume)]
  const path = local?.path ?? hostPath?.path
  const usedBytes = used.get(uid)
  const move = moveRow(volume, copiedBytes.get(uid))
  return {
    ...(claim && { claim }),
    volume: name,
    state: deletionTimestamp === undefined ? (volume.status?.phase ?? 'Pending') : 'Terminating',
    ...(storageClassName && { storageClass: storageClassName }),
    ...placeRows(pool, node, path),
    requestedBytes: bytesOf(capacity['storage']),
    ...(usedBytes !== undefined && { usedBytes }),
    ...(move !== undefined && { move }),
    ...backupRows(volume, copiedBytes.get(uid)),
    pods: users.get(claim ?? '') ?? [],
  }
}

function placeRows(pool: string | undefined, node: string | undefined, path: string | undefined) {
  return {
    ...(pool !== undefined && { pool }),
    ...(node !== undefined && { node }),
    ...(path !== undefined && { path }),
  }
}

function moveRow(volume: PersistentVolume, copiedBytes: number | undefined): FleetVolume['move'] {
  const [move, wanted] = [moveOf(volume), volume.metadata.annotations?.[moveToAnnotation]]
  if (move === undefined) return wanted === undefined ? undefined : { to: wanted, phase: 'waiting' }
  const { phase, bytes, why, to } = move
  return {
    ...{ to: to.node, phase },
    ...(bytes !== undefined && { bytes }),
    ...(copiedBytes !== undefined && { copiedBytes }),
    ...(why !== undefined && { why }),
  }
}

function backupRows(
  volume: PersistentVolume,
  copied: number | undefined,
): Pick<FleetVolume, 'backup' | 'lastBackup' | 'backupFailure' | 'restore'> {
  const { annotations = {} } = volume.metadata
  const [backup, last, failure, restore] = [
    backupOf(volume),
    lastBackupOf(volume),
    backupFailureOf(volume),
    restoreOf(volume),
  ]
  const copiedBytes = copied !== undefined && { copiedBytes: copied }
  const why = annotations[restoreFailureAnnotation]
  const isWanted = annotations[backupNowAnnotation] !== undefined
  const { phase, to = '', mode = '', bytes } = backup ?? {}
  return {
    ...(backup === undefined && isWanted && { backup: { phase: 'waiting' } }),
    ...(phase && { backup: { phase, to, mode, ...(bytes !== undefined && { bytes }), ...copiedBytes } }),
    ...(last && {
      lastBackup: { name: last.name, to: last.to, time: last.time, bytes: last.bytes, mode: last.mode },
    }),
    ...(failure && { backupFailure: { why: failure.why, time: failure.time } }),
    ...(restore && {
      restore: { from: restore.from, name: restore.name, ...copiedBytes, ...(why !== undefined && { why }) },
    }),
  }
}

function claimRow({ metadata, spec, status }: PersistentVolumeClaim, users: RowFacts['users']): FleetVolume {
  const claim = `${metadata.namespace}/${metadata.name}`
  return {
    claim,
    state: metadata.deletionTimestamp === undefined ? (status?.phase ?? 'Pending') : 'Terminating',
    ...(spec?.storageClassName && { storageClass: spec.storageClassName }),
    requestedBytes: bytesOf(spec?.resources?.requests?.['storage']),
    pods: users.get(claim) ?? [],
  }
}

/** Where a volume outside of pools is: the one node that its affinity names. */
function hostnameOf({ spec }: PersistentVolume): string | undefined {
  const [term, ...others] = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? []
  const found = term?.matchExpressions?.find(({ key, operator }) => key === hostnameLabel && operator === 'In')
  return others.length === 0 && found?.values?.length === 1 ? found.values[0] : undefined
}

const hostnameLabel = 'kubernetes.io/hostname'

type PoolFacts = {
  readonly places: ReadonlyMap<string, Place>
  /** Volumes, by pool. */
  readonly counts: ReadonlyMap<string, number>
  readonly reportOf: FleetVolumeFacts['reportOf']
}

function poolRows({ places, counts, reportOf }: PoolFacts): readonly FleetPool[] {
  const present = [...places].map(([id, { node, path, name: called }]): FleetPool => {
    const { name = '' } = node.metadata
    const report = reportOf(name)?.pools.find((one) => one.id === id)
    const isReady = node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
    return {
      ...{ id, node: name, state: isReady ? 'Ready' : 'NodeNotReady', volumes: counts.get(id) ?? 0 },
      ...(path !== undefined && { path }),
      ...(called !== undefined && { name: called }),
      ...(report && { capacityBytes: report.capacityBytes, availableBytes: report.availableBytes }),
      ...(report && { inTrash: report.inTrash ?? 0 }),
    }
  })
  const missing = [...counts].flatMap(([id, count]): readonly FleetPool[] =>
    places.has(id) ? [] : [{ id, state: 'Missing', volumes: count }],
  )
  return [...present, ...missing].sort((a, b) => order(a.node, b.node) || order(a.id, b.id))
}

/** A node that reports entries of a pool which it does not have is not believed. */
function trashRows(places: PoolFacts['places'], reportOf: PoolFacts['reportOf']): readonly FleetTrash[] {
  const rows = [...places].flatMap(([id, { node, path }]): readonly FleetTrash[] => {
    const { name = '' } = node.metadata
    const own = reportOf(name)?.trash.filter(({ pool }) => pool === id) ?? []
    return own.map(({ keptSeconds, keepSeconds, ...entry }) => ({
      ...{ ...entry, node: name, path: path ?? '' },
      // A report may be so much older.
      leftSeconds: Math.max(0, keepSeconds - keptSeconds - trashReportSeconds),
    }))
  })
  return rows.sort((a, b) => order(a.claim, b.claim) || b.leftSeconds - a.leftSeconds)
}

function order(a = '', b = ''): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function bytesOf(quantity: string | number | undefined): number {
  const parsed = quantity === undefined ? undefined : tryParseQuantity(quantity)
  const bytes = parsed === undefined ? 0 : Math.ceil(quantityToNumber(parsed))
  return Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : 0
}
