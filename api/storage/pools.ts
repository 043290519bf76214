/** Pools: folders of nodes in which the class `local-path` has its volumes. A pool is found by its id, whatever its path and its node. */
import { decode } from '../decode.ts'
import type { Node } from '../node.ts'
import { type Described, list, object, text } from '../schema.ts'
import { parseJson } from '../text/json.ts'

const PoolSchema = object({ id: text, path: text })
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

const mostPools = 16
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

export function isPool({ id, path }: Pool): boolean {
  return idPattern.test(id) && path.startsWith('/') && path.length <= longestPath && !path.split('/').includes('..')
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
