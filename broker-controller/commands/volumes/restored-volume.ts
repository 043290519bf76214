/** Which volume and which claim give people their data back: from the trash, or from a folder of a machine. Pure. */
import { createHash } from 'node:crypto'
import { basename, dirname, join, normalize } from 'node:path/posix'
import type { FleetBackup } from '../../../api/backups/fleet-backups.ts'
import { restoreAnnotation, type VolumeRestore } from '../../../api/backups/volume-backup.ts'
import { dnsSubdomainProblem } from '../../../api/names.ts'
import type { Node } from '../../../api/node.ts'
import { compareQuantities, tryParseQuantity } from '../../../api/quantity.ts'
import type { FleetTrash, FleetVolumes } from '../../../api/storage/fleet-volumes.ts'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../../api/storage/persistent-volume-claim.ts'
import {
  hasDataAnnotation,
  labelledPools,
  localProvisioner,
  type Pool,
  poolAnnotation,
  poolLabel,
  reportedPools,
  volumeFolder,
} from '../../../api/storage/pools.ts'
import type { StorageClass } from '../../../api/storage/storage-class.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { volumeDataFinalizer } from '../../../api/storage/volume-orders.ts'
import { byteText } from '../../../api/text/byte-text.ts'
import { claimName, trashed, volumeAt } from './volume-tables.ts'

/** What is created; `claim` undefined: it is there, and waits. Or why nothing is. */
export type RestoredVolume =
  | { readonly volume: PersistentVolume; readonly claim: PersistentVolumeClaim | undefined }
  | { readonly problem: string }

/** The claim that gets the data. */
export type ForClaim = {
  readonly namespace: string
  readonly name: string
  /** undefined: it is created. */
  readonly present: PersistentVolumeClaim | undefined
  /** What a new one requests. */
  readonly size: string | undefined
  readonly classOf: (name: string) => StorageClass | undefined
}

const usualClass = 'local-path'
const modesOfPools = ['ReadWriteOnce', 'ReadWriteOncePod']

/** The entry of the trash that is meant: by its uid, or by its claim. Or what is wrong. */
export function chosenEntry(subject: string, { trash, pools }: FleetVolumes): FleetTrash | string {
  const byUID = trash.find(({ uid }) => uid === subject)
  if (byUID !== undefined) return byUID
  const claim = claimName(subject)
  const [first, ...others] = trash.filter((one) => one.claim === claim)
  if (first === undefined) {
    const away = pools.flatMap(({ node, capacityBytes }) =>
      node !== undefined && capacityBytes === undefined ? [node] : [],
    )
    const where = away.length === 0 ? '' : `. Nodes that have not reported yet: ${away.join(', ')}`
    return `Nothing of the claim ${claim} is in the trash: 'bramble-controller volumes trash' lists what is${where}`
  }
  if (others.length === 0) return first
  return `The trash has ${others.length + 1} volumes of the claim ${claim}. Give the UID of one: ${[first, ...others].map(trashed).join('; ')}`
}

/** From the trash. The name of the volume is that of the one before: the second call finds what the first one created. */
export function undeletion(entry: FleetTrash, wanted: ForClaim): RestoredVolume {
  const { uid, pool, node, path, folder, volume } = entry
  if (folder === '' || !folder.includes('_')) {
    return {
      problem: `What was in ${uid} is not recorded. Its data is in ${join(path, '.bramble/trash', uid, 'data')} on ${node}`,
    }
  }
  if (path === '')
    return { problem: `Node ${node} does not report the path of the pool ${pool}: try again when it is ready` }
  return restored({
    ...{ wanted, capacity: entry.capacity, storageClass: entry.storageClass ?? usualClass },
    name: dnsSubdomainProblem(volume) === undefined ? volume : `undeleted-${uid}`,
    place: { pool: { id: pool, path }, path: join(path, folder) },
  })
}

/** The folder `path` of the node as it is. Directly in a pool it becomes a volume of the pool; else its data is never deleted. */
export function adoption(node: Node, path: string, wanted: ForClaim, fleet: FleetVolumes): RestoredVolume {
  const { name = '' } = node.metadata
  const shown = JSON.stringify(path)
  if (!path.startsWith('/') || normalize(path) !== path || path === '/' || path.endsWith('/')) {
    return {
      problem: `Invalid path ${shown}: give the absolute path of a folder, without . and .. and without a slash at its end`,
    }
  }
  const owner = volumeAt(name, path, fleet)
  if (owner !== undefined && owner.claim !== `${wanted.namespace}/${wanted.name}`) {
    return {
      problem: `${path} on ${name} is the folder of the volume ${owner.volume} (claim: ${owner.claim ?? 'none'})`,
    }
  }
  const given = new Set(labelledPools(node))
  const pool = reportedPools(node).find((one) => given.has(one.id) && `${path}/`.startsWith(`${one.path}/`))
  if (pool !== undefined && (dirname(path) !== pool.path || basename(path).startsWith('.'))) {
    return {
      problem: `${path} is not a folder of a volume in the pool ${pool.path}: move it to ${join(pool.path, basename(path).replace(/^\.+/, ''))}`,
    }
  }
  const digest = createHash('sha256').update(`${name} ${path}`).digest('hex').slice(0, 16)
  const hostname = node.metadata.labels?.['kubernetes.io/hostname'] ?? name
  return restored({
    ...{ wanted, capacity: undefined, storageClass: usualClass, name: `adopted-${digest}` },
    place: pool === undefined ? { hostname, path } : { pool, path },
  })
}

/** A new volume in the pool of the node, whose data the controller makes from the backup. `id`: new for each. */
export function restoration(
  backup: FleetBackup,
  wanted: ForClaim,
  { node, id, fleet }: { readonly node: string; readonly id: string; readonly fleet: FleetVolumes },
): RestoredVolume {
  const claim = `${wanted.namespace}/${wanted.name}`
  if (backup.problem !== undefined) return { problem: `${backup.name} cannot be restored: ${backup.problem}` }
  const pool = fleet.pools.find((one) => one.node === node)
  if (pool?.path === undefined)
    return {
      problem: `Node ${node} has no pool: give one that has with --to NODE ('bramble-controller volumes pools')`,
    }
  const { availableBytes } = pool
  if (availableBytes !== undefined && availableBytes < backup.contentBytes)
    return {
      problem: `${backup.name} has ${byteText(backup.contentBytes)}, and the pool of ${node} has ${byteText(availableBytes)} free`,
    }
  const before = fleet.volumes.find((row) => row.claim === claim && row.restore !== undefined)
  if (before !== undefined) return { problem: `The volume ${before.volume} of ${claim} is being restored already` }
  const name = `restored-${id}`
  const made = restored({
    ...{ wanted, name, capacity: backup.capacity, storageClass: backup.storageClass ?? usualClass },
    place: {
      pool: { id: pool.id, path: pool.path },
      path: join(pool.path, volumeFolder(wanted.namespace, wanted.name, name)),
    },
  })
  if ('problem' in made) return made
  const { metadata } = made.volume
  const restore: VolumeRestore = { id, from: backup.at, name: backup.name }
  const annotations = { ...metadata.annotations, [restoreAnnotation]: JSON.stringify(restore) }
  return { ...made, volume: { ...made.volume, metadata: { ...metadata, annotations } } }
}

/** The claim in the name of a folder that local-path-provisioner made: `pvc-UID_NAMESPACE_NAME`. */
export function claimOfFolder(path: string): string | undefined {
  const [, namespace, name] = /^pvc-[0-9a-f-]{36}_([a-z0-9-]+)_([a-z0-9.-]+)$/.exec(basename(path)) ?? []
  return namespace === undefined ? undefined : `${namespace}/${name}`
}

type Place = { readonly path: string } & (
  | { readonly pool: Pool }
  | { readonly hostname: string; readonly pool?: undefined }
)

type RestoredFacts = {
  readonly wanted: ForClaim
  readonly name: string
  readonly place: Place
  /** What the volume had before. */
  readonly capacity: string | undefined
  readonly storageClass: string
}

function restored({ wanted, name, place, capacity, storageClass }: RestoredFacts): RestoredVolume {
  const { namespace, name: claimed, present, size } = wanted
  const claim = `${namespace}/${claimed}`
  const problem = present && claimProblem(claim, present, name)
  if (problem !== undefined) return { problem }
  const requested = present?.spec?.resources?.requests?.['storage'] ?? size ?? capacity
  if (requested === undefined) {
    return { problem: `Give the size that the claim ${claim} requests with --size, like 5Gi. It is not enforced` }
  }
  const modes = present?.spec?.accessModes ?? ['ReadWriteOnce']
  const className = present === undefined ? storageClass : (present.spec?.storageClassName ?? '')
  const volume = volumeFor({
    ...{ namespace, claimed, name, place, modes, className },
    capacity: larger(String(requested), capacity),
    policy: policyOf(place, wanted.classOf(className)),
  })
  if (present !== undefined) return { volume, claim: undefined }
  return {
    volume,
    claim: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace, name: claimed },
      spec: {
        ...{ accessModes: modes, resources: { requests: { storage: requested } }, volumeName: name },
        storageClassName: className,
      },
    },
  }
}

function claimProblem(claim: string, { metadata, spec }: PersistentVolumeClaim, name: string): string | undefined {
  const { volumeName = '', volumeMode = 'Filesystem', accessModes = [] } = spec ?? {}
  if (metadata.deletionTimestamp !== undefined) {
    return `The claim ${claim} is being deleted: stop the pods that use it, and try again when it is gone`
  }
  if (volumeName !== '' && volumeName !== name) {
    return `The claim ${claim} has the volume ${volumeName}. Stop its pods and delete the claim first, and give the UID then; or give another claim with --claim`
  }
  if (volumeMode !== 'Filesystem')
    return `The claim ${claim} has the volumeMode ${volumeMode}, and the data is a folder`
  const other = accessModes.find((mode) => !modesOfPools.includes(mode))
  return other && `The claim ${claim} has the access mode ${other}, and the data is on one node: use ReadWriteOnce`
}

/** Data outside of pools is never deleted. */
function policyOf(place: Place, storageClass: StorageClass | undefined): string {
  return place.pool === undefined || storageClass === undefined ? 'Retain' : (storageClass.reclaimPolicy ?? 'Delete')
}

type VolumeFacts = {
  readonly namespace: string
  readonly claimed: string
  readonly name: string
  readonly place: Place
  readonly capacity: string
  readonly modes: readonly string[]
  readonly className: string
  readonly policy: string
}

function volumeFor({
  namespace,
  claimed,
  name,
  place,
  capacity,
  modes,
  className,
  policy,
}: VolumeFacts): PersistentVolume {
  const { pool, path } = place
  const annotations = pool && {
    [volumeAnnotations.provisionedBy]: localProvisioner,
    [poolAnnotation]: pool.id,
    [hasDataAnnotation]: 'true',
  }
  const where = pool
    ? { key: poolLabel(pool.id), operator: 'Exists' as const }
    : { key: 'kubernetes.io/hostname', operator: 'In' as const, values: [place.hostname] }
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, ...(annotations && { annotations, finalizers: [volumeDataFinalizer] }) },
    spec: {
      capacity: { storage: capacity },
      accessModes: modes,
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: claimed },
      persistentVolumeReclaimPolicy: policy,
      storageClassName: className,
      volumeMode: 'Filesystem',
      local: { path },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [where] }] } },
    },
  }
}

/** A claim is not bound to a smaller volume. */
function larger(one: string, other: string | undefined): string {
  if (other === undefined || tryParseQuantity(one) === undefined || tryParseQuantity(other) === undefined) return one
  return compareQuantities(one, other) < 0 ? other : one
}
