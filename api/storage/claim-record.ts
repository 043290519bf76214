/**
 * A claim and the volume that it is bound to, as one text. A node receives it with the claims of its pods, and returns it, unchanged, to a
 * controller whose store lacks them.
 */
import { decode } from '../decode.ts'
import type { ObjectMeta } from '../meta.ts'
import { object } from '../schema.ts'
import { parseJson } from '../text/json.ts'
import { type PersistentVolume, PersistentVolumeSchema } from './persistent-volume.ts'
import { type PersistentVolumeClaim, PersistentVolumeClaimSchema } from './persistent-volume-claim.ts'
import { poolAnnotation } from './pools.ts'
import { moveAnnotation, moveToAnnotation } from './volume-move.ts'
import { volumeAnnotations } from './volume-names.ts'
import { volumeDataFinalizer } from './volume-orders.ts'

export type ClaimRecord = { readonly claim: PersistentVolumeClaim; readonly volume: PersistentVolume }

/** Each change of a node's pods sends the records of all their claims again. Without labels most have 900 bytes. */
const longestRecord = 4096
const keptAnnotations: readonly string[] = [
  ...Object.values(volumeAnnotations),
  poolAnnotation,
  moveAnnotation,
  moveToAnnotation,
  'meta.helm.sh/release-name',
  'meta.helm.sh/release-namespace',
]

/** undefined: it would be too long. Labels are left out before that. The status follows from the rest. */
export function claimRecord({ claim, volume }: ClaimRecord): string | undefined {
  const { claimRef, ...spec } = volume.spec ?? {}
  const { resourceVersion: _, ...ref } = claimRef ?? {}
  const whole = {
    claim: { metadata: keptMetadata(claim.metadata), spec: claim.spec },
    volume: { metadata: keptMetadata(volume.metadata), spec: { ...spec, claimRef: ref } },
  }
  return [whole, { claim: withoutLabels(whole.claim), volume: withoutLabels(whole.volume) }]
    .map((record) => JSON.stringify(record))
    .find((record) => Buffer.byteLength(record) <= longestRecord)
}

/** undefined: this version cannot decode it. Whether a controller made it is shown by its proof alone. */
export function readClaimRecord(record: string): ClaimRecord | undefined {
  if (Buffer.byteLength(record) > longestRecord) return undefined
  const found = decode(RecordSchema, parseJson(record))
  if (!found.ok) return undefined
  const { claim, volume } = found.value
  return {
    claim: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...claim },
    volume: { apiVersion: 'v1', kind: 'PersistentVolume', ...volume },
  }
}

const { metadata, spec: claimSpec } = PersistentVolumeClaimSchema.properties
const RecordSchema = object({
  claim: object({ metadata, spec: claimSpec }),
  volume: object({ metadata, spec: PersistentVolumeSchema.properties.spec }),
})

function keptMetadata(given: ObjectMeta): ObjectMeta {
  const { name, namespace, uid, creationTimestamp, labels, annotations = {} } = given
  const kept = Object.entries(annotations).filter(([key]) => keptAnnotations.includes(key))
  // The pod that a claim was made for keeps its uid; other owners are lost with the store.
  const ownerReferences = given.ownerReferences?.filter(({ kind, controller }) => controller === true && kind === 'Pod')
  const finalizers = given.finalizers?.filter((finalizer) => finalizer === volumeDataFinalizer)
  return {
    ...{ name, uid, creationTimestamp, annotations: Object.fromEntries(kept) },
    ...(namespace !== undefined && { namespace }),
    ...(labels && { labels }),
    ...(ownerReferences && ownerReferences.length > 0 && { ownerReferences }),
    ...(finalizers && finalizers.length > 0 && { finalizers }),
  }
}

function withoutLabels<O extends { readonly metadata: ObjectMeta }>(given: O): O {
  const { labels: _, ...rest } = given.metadata
  return { ...given, metadata: rest }
}
