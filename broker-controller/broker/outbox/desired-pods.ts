/** What a node is told of its pods: what it needs to run them, and nothing that changes because it runs them. */
import { isDeepStrictEqual } from 'node:util'
import type { ObjectMeta, Stored } from '../../../api/meta.ts'
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import type { Pod } from '../../../api/pod.ts'

/**
 * The pod for its node. When only its version differs from `earlier`, `earlier` itself is given, so that a status the
 * node reported does not come back to it as news.
 */
export function projectPod(pod: Pod & Stored<Pod>, earlier?: Pod): Pod {
  const { apiVersion, kind, metadata, spec, status } = pod
  const end = isFinished(pod) && status !== undefined ? { status: endOf(status) } : gatesOf(pod)
  const projected: Pod = { apiVersion, kind, metadata: metadataOf(metadata), spec, ...end }
  return earlier !== undefined && isSame(projected, earlier) ? earlier : projected
}

/** A pod as its node was told of it, and the stored pod that was made from. */
export type DesiredPod = { readonly source: Pod & Stored<Pod>; readonly pod: Pod }

/** All pods of a node in a lasting order; `earlier` by uid, as they were last told. Only pods that changed are compared. */
export function desiredPods(
  pods: readonly (Pod & Stored<Pod>)[],
  earlier: ReadonlyMap<string, DesiredPod>,
): ReadonlyMap<string, DesiredPod> {
  const placed = pods.map((pod) => ({ pod, place: `${pod.metadata.namespace}/${pod.metadata.name}` }))
  placed.sort((a, b) => (a.place < b.place ? -1 : 1))
  return new Map(
    placed.map(({ pod: source }) => {
      const { uid } = source.metadata
      const before = earlier.get(uid)
      return [uid, before?.source === source ? before : { source, pod: projectPod(source, before?.pod) }]
    }),
  )
}

/** Is there nothing new to tell? */
export function isToldAlready(
  pods: ReadonlyMap<string, DesiredPod>,
  earlier: ReadonlyMap<string, DesiredPod> | undefined,
): boolean {
  return earlier?.size === pods.size && [...pods].every(([uid, { pod }]) => earlier.get(uid)?.pod === pod)
}

function metadataOf(metadata: Stored['metadata']): ObjectMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata
  const { labels, annotations, deletionTimestamp, deletionGracePeriodSeconds, ownerReferences } = metadata
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    uid,
    resourceVersion,
    creationTimestamp,
    ...(labels !== undefined && { labels }),
    ...(annotations !== undefined && { annotations }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(deletionGracePeriodSeconds !== undefined && { deletionGracePeriodSeconds }),
    ...(ownerReferences !== undefined && { ownerReferences }),
  }
}

function endOf({ phase, reason, message }: NonNullable<Pod['status']>): Pod['status'] {
  return { phase, ...(reason !== undefined && { reason }), ...(message !== undefined && { message }) }
}

/** What others say of its readiness is theirs to write in its status, and the node's to judge by. */
function gatesOf({ spec: { readinessGates = [] }, status }: Pod): Pick<Pod, 'status'> {
  if (readinessGates.length === 0) return {}
  const gates = new Set(readinessGates.map(({ conditionType }) => conditionType))
  const conditions = (status?.conditions ?? [])
    .filter(({ type }) => gates.has(type))
    .map(({ type, status: said }) => ({ type, status: said }))
  return { status: { conditions } }
}

function isSame(projected: Pod, earlier: Pod): boolean {
  const { resourceVersion: _, ...metadata } = projected.metadata
  const { resourceVersion: __, ...earlierMetadata } = earlier.metadata
  return (
    isDeepStrictEqual(metadata, earlierMetadata) &&
    isDeepStrictEqual(projected.spec, earlier.spec) &&
    isDeepStrictEqual(projected.status, earlier.status)
  )
}
