/** The fleet in a backup of the controller: its machines, and its objects as a simulation begins with them. Secrets are not opened. */
import { decode } from '../../api/decode.ts'
import type { AnyObject } from '../../api/meta.ts'
import { HardwareIdentitySchema, hardwareIdentityAnnotation } from '../../api/node/hardware-identity.ts'
import type { Node } from '../../api/node.ts'
import { mirrorAnnotation, type Pod } from '../../api/pod.ts'
import { quantityToNumber } from '../../api/quantity.ts'
import { builtInResources } from '../../api/resources.ts'
import { reportedPools } from '../../api/storage/pools.ts'
import { parseJson } from '../../api/text/json.ts'
import { uuidOf } from '../../api/text/uuid.ts'
import { type MachineShape, usualMachine } from '../world/machine-shape.ts'
import { randomSource } from '../world/random-source.ts'
import type { StoreContents, StoredRow } from '../world/store-file.ts'
import { madeObject, referencesIn } from './made-references.ts'
import { isOfOtherPrograms } from './other-programs.ts'

export type BackupFleet = {
  readonly machines: readonly MachineShape[]
  readonly contents: StoreContents
  /** What differs from the backup, for people. */
  readonly notes: readonly string[]
}

/** What is over, or is written again by programs that run. */
const passing: ReadonlySet<string> = new Set(['events', 'leases', 'certificatesigningrequests', 'volumeattachments'])

/** `now`: RFC 3339, when the backup was made. */
export function fleetOfBackup({ rows, reserved }: StoreContents, now: string): BackupFleet {
  const [kept, left] = [[] as StoredRow[], new Set<string>()]
  const secrets: StoredRow[] = []
  let mirrored = 0
  for (const row of rows) {
    if (passing.has(row.resource)) continue
    if (row.resource === 'secrets') secrets.push(row)
    else if (builtInResources.get(row.resource) === undefined || isOfOtherPrograms(row.resource)) left.add(row.resource)
    else if (row.resource === 'pods' && isMirrored(row)) mirrored += 1
    else if (row.resource === 'pods') kept.push(...startedAgain(row))
    else kept.push(row.resource === 'nodes' ? asHealthy(row) : row)
  }
  const objects = kept.map(objectOf)
  const nodes = kept.filter(({ resource }) => resource === 'nodes').map((row) => objectOf(row) as Node)
  return {
    machines: nodes.map(machineOf),
    contents: { rows: [...kept, ...madeSecrets(secrets, objects, now)], reserved },
    notes: [
      ...(left.size > 0 ? [`Left out: ${[...left].sort().join(', ')}`] : []),
      ...(mirrored > 0 ? [`Left out: ${mirrored} static pods of machines`] : []),
      ...(secrets.length > 0 ? [`${secrets.length} Secrets have no content but the keys that pods name`] : []),
    ],
  }
}

function objectOf({ body }: StoredRow): AnyObject {
  return JSON.parse(body) as AnyObject
}

function isMirrored(row: StoredRow): boolean {
  return objectOf(row).metadata.annotations?.[mirrorAnnotation] !== undefined
}

/** Its containers are started with the simulation. One that is being deleted is over. */
function startedAgain(row: StoredRow): readonly StoredRow[] {
  const pod = objectOf(row) as Pod
  const { phase, qosClass, conditions = [] } = pod.status ?? {}
  if (pod.metadata.deletionTimestamp !== undefined) return []
  if (phase === 'Succeeded' || phase === 'Failed') return [row]
  const status = {
    phase: 'Pending',
    ...(qosClass !== undefined && { qosClass }),
    conditions: conditions.filter(({ type }) => type === 'PodScheduled'),
  }
  return [{ ...row, body: JSON.stringify({ ...pod, status }) }]
}

const lifecycleTaints = /^node\.kubernetes\.io\/(not-ready|unreachable|\w+-pressure|network-unavailable)$/

/** All machines are on when a simulation begins. One that is cordoned stays so. */
function asHealthy(row: StoredRow): StoredRow {
  const node = objectOf(row) as Node
  const { taints = [], ...spec } = node.spec ?? {}
  const kept = taints.filter(({ key }) => !lifecycleTaints.test(key))
  return { ...row, body: JSON.stringify({ ...node, spec: { ...spec, ...(kept.length > 0 && { taints: kept }) } }) }
}

function machineOf(node: Node): MachineShape {
  const { metadata, status } = node
  const { name = '', labels = {}, annotations = {} } = metadata
  const usual = usualMachine(name)
  const { cpu, memory, 'ephemeral-storage': storage } = status?.capacity ?? {}
  const identity = decode(HardwareIdentitySchema, parseJson(annotations[hardwareIdentityAnnotation] ?? ''))
  const { machineID, systemUUID, architecture = usual.architecture } = status?.nodeInfo ?? {}
  return {
    ...usual,
    architecture,
    ...(cpu !== undefined && { cpus: quantityToNumber(cpu) }),
    ...(memory !== undefined && { memoryBytes: quantityToNumber(memory) }),
    ...(storage !== undefined && { storageBytes: quantityToNumber(storage) }),
    labels,
    pools: reportedPools(node),
    hardware: identity.ok ? identity.value : { ...(machineID && { machineID }), ...(systemUUID && { systemUUID }) },
  }
}

function madeSecrets(secrets: readonly StoredRow[], objects: readonly AnyObject[], now: string): readonly StoredRow[] {
  const keys = new Map(
    referencesIn(objects)
      .filter(({ kind }) => kind === 'Secret')
      .map(({ namespace, name, keys }) => [`${namespace}/${name}`, keys]),
  )
  const random = randomSource(1)
  return secrets.map(({ resource, namespace, name, version }) => {
    const made = madeObject({ kind: 'Secret', namespace, name, keys: keys.get(`${namespace}/${name}`) ?? [] })
    const stored = { uid: uuidOf(random.next), resourceVersion: String(version), creationTimestamp: now }
    const body = JSON.stringify({ ...made, type: 'Opaque', metadata: { ...made.metadata, ...stored } })
    return { resource, namespace, name, version, body }
  })
}
