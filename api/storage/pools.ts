/** Pools: folders of nodes in which the class `local-path` has its volumes. A pool is found by its id, whatever its path and its node. */
import { decode } from '../decode.ts'
import { dnsLabelProblem } from '../names.ts'
import type { Node } from '../node.ts'
import { bool, type Described, list, object, optional, text } from '../schema.ts'
import { parseJson } from '../text/json.ts'
import type { StorageClass } from './storage-class.ts'

const PoolSchema = object({
  id: text,
  path: text,
  /** The one that the configuration of its agent gives it. Names are of one machine, ids of the fleet. */
  name: optional(text),
  /** Volumes of classes without the parameter `pool` are made in it; left out: if it has no name. */
  default: optional(bool),
  /** Less than its reserve is free: no volumes are made in it. */
  full: optional(bool),
})
export type Pool = Described<typeof PoolSchema>

/** On a Node, written by its agent: the pools that are there, as JSON. */
export const poolsAnnotation = 'bramble.dev/pools'
/** On a PersistentVolume: the id of its pool. */
export const poolAnnotation = 'bramble.dev/pool'
/** On a PersistentVolume of a pool, `true`: its data was there before it. Nothing is made in its place. */
export const hasDataAnnotation = 'bramble.dev/has-data'
/** The domain of the label that a Node has for each of its pools. Only a controller sets it: pods are placed by it. */
export const poolLabelDomain = 'pool.bramble.dev'
const poolLabelPrefix = `${poolLabelDomain}/`

export const localProvisioner = 'bramble.dev/local-path'
/** The parameter of a class of that provisioner: in which pool of a machine its volumes are made. */
export const poolParameter = 'pool'

/** Pools of one machine. */
export const mostPools = 16
const longestPath = 1024
/** As the agent makes them. */
const idPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Those that the node reports. What is not a pool is left out: a node may write anything. */
export function reportedPools({ metadata: { annotations = {} } }: Node): readonly Pool[] {
  const written = annotations[poolsAnnotation]
  if (written === undefined || written.length > mostPools * (longestPath + 100)) return []
  const decoded = decode(list(PoolSchema), parseJson(written))
  return decoded.ok ? decoded.value.slice(0, mostPools).filter(isPool) : []
}

export function isPool({ id, path, name }: Pool): boolean {
  const isPath = path.startsWith('/') && path.length <= longestPath && !path.split('/').includes('..')
  return idPattern.test(id) && isPath && (name === undefined || poolNameProblem(name) === undefined)
}

/** Why it is not the name of a pool; undefined: it is. */
export function poolNameProblem(name: string): string | undefined {
  if (idPattern.test(name)) return 'must not be the ID of a pool'
  return dnsLabelProblem(name)
}

/**
 * Whether volumes of a class with these parameters are made in the pool: the parameter is the name of a pool, its id, or its label. Volumes are
 * made in no other pool while that one is missing or full.
 */
export function isPoolOfClass(pool: Pool, parameters: StorageClass['parameters'] = {}): boolean {
  const wanted = parameters[poolParameter]
  if (wanted === undefined) return pool.default ?? pool.name === undefined
  return [pool.name, pool.id, poolLabel(pool.id)].includes(wanted)
}

/** Why the parameters of a class are refused; undefined: they are right. */
export function poolProblem(parameters: NonNullable<StorageClass['parameters']>): string | undefined {
  const wanted = parameters[poolParameter]
  if (wanted === undefined) return undefined
  const id = wanted.startsWith(poolLabelPrefix) ? wanted.slice(poolLabelPrefix.length) : wanted
  if (idPattern.test(id) || dnsLabelProblem(wanted) === undefined) return undefined
  return `invalid value ${JSON.stringify(wanted)} for the parameter ${poolParameter}: use the name of a pool, its ID, or its label`
}

/** Those of the class that the node reports, and has the labels of. */
export function poolsOfClass(node: Node, { parameters }: Pick<StorageClass, 'parameters'>): readonly Pool[] {
  return usablePools(node).filter((pool) => isPoolOfClass(pool, parameters))
}

/** Those of them in which volumes can be made. */
export function poolsForClass(node: Node, storageClass: Pick<StorageClass, 'parameters'>): readonly Pool[] {
  return poolsOfClass(node, storageClass).filter(({ full }) => full !== true)
}

const usable = new WeakMap<Node, readonly Pool[]>()

/** Read once for each version of a Node: the scheduler asks for each pod. */
function usablePools(node: Node): readonly Pool[] {
  const known = usable.get(node)
  if (known !== undefined) return known
  const labelled = new Set(labelledPools(node))
  const found = labelled.size === 0 ? [] : reportedPools(node).filter(({ id }) => labelled.has(id))
  usable.set(node, found)
  return found
}

export function poolLabel(id: string): string {
  return `${poolLabelPrefix}${id}`
}

/** The ids in the labels of the node. */
export function labelledPools({ metadata: { labels = {} } }: Node): readonly string[] {
  return Object.keys(labels).flatMap((name) =>
    name.startsWith(poolLabelPrefix) ? [name.slice(poolLabelPrefix.length)] : [],
  )
}

/** A file name has at most 255 bytes; the name of the volume makes it unique. */
export function volumeFolder(namespace: string, claim: string, volume: string): string {
  return `${namespace}_${claim}`.slice(0, 254 - volume.length).concat(`_${volume}`)
}
