/** Revisions of a Deployment: annotations of its ReplicaSets, by which `kubectl rollout undo` finds its way back. Pure. */
import type { Deployment } from '../../../../api/workloads/deployment.ts'
import type { ReplicaSet } from '../../../../api/workloads/replica-set.ts'
import type { StoredObject } from '../../../store/store.ts'
import { controllerReference } from '../controller-ref.ts'
import {
  byAge,
  desiredReplicasAnnotation,
  maxReplicasAnnotation,
  sizeAnnotations,
  sizeOfNewSet,
} from './deployment-sizes.ts'
import { isSameTemplate, templateHash, templateHashLabel } from './template-hash.ts'

export const revisionAnnotation = 'deployment.kubernetes.io/revision'
const historyAnnotation = 'deployment.kubernetes.io/revision-history'
/** Characters (maxRevHistoryLengthInChars). */
const longestHistory = 2000

/** Annotations of a Deployment that its ReplicaSets do not get. */
const ownAnnotations = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  revisionAnnotation,
  historyAnnotation,
  desiredReplicasAnnotation,
  maxReplicasAnnotation,
  'deprecated.deployment.rollback.to',
])

type Annotations = { readonly [key: string]: string }

/**
 * The ReplicaSet of the present template, the oldest where there are many, and the others by age (FindOldReplicaSets in
 * pkg/controller/deployment/util/deployment_util.go).
 */
export function newAndOldSets<S extends ReplicaSet>(
  deployment: Deployment,
  sets: readonly S[],
): { readonly newSet: S | undefined; readonly oldSets: readonly S[] } {
  const sorted = sets.toSorted(byAge)
  const newSet = sorted.find(({ spec }) => isSameTemplate(spec.template, deployment.spec.template))
  return { newSet, oldSets: sorted.filter((set) => set !== newSet) }
}

/** 0: there is none. undefined: it is not a number of 64 bits (strconv.ParseInt). */
function revisionIn(text: string | undefined): bigint | undefined {
  if (text === undefined) return 0n
  const revision = /^[-+]?\d{1,19}$/.test(text) ? BigInt(text) : undefined
  return revision !== undefined && BigInt.asIntN(64, revision) === revision ? revision : undefined
}

const revisionOfSet = ({ metadata }: ReplicaSet) => revisionIn(metadata.annotations?.[revisionAnnotation])

/** The revision of a template that is new, or comes back. */
export function nextRevision(oldSets: readonly ReplicaSet[]): bigint {
  const most = oldSets.reduce((most, set) => {
    const revision = revisionOfSet(set) ?? 0n
    return revision > most ? revision : most
  }, 0n)
  return most + 1n
}

export function byRevision(a: ReplicaSet, b: ReplicaSet): number {
  const [revision, other] = [revisionOfSet(a), revisionOfSet(b)]
  if (revision === undefined || other === undefined || revision === other) return byAge(a, b)
  return revision < other ? -1 : 1
}

/** The annotations of the ReplicaSet of the present template (SetNewReplicaSetAnnotations). */
export function newSetAnnotations(deployment: Deployment, present: Annotations, revision: bigint): Annotations {
  const copied = Object.entries(deployment.metadata.annotations ?? {}).filter(([key]) => !ownAnnotations.has(key))
  const annotations = { ...present, ...Object.fromEntries(copied) }
  const before = present[revisionAnnotation]
  const number = revisionIn(before || undefined)
  if (number === undefined || number >= revision) return annotations
  const history = before === undefined ? undefined : historyWith(present[historyAnnotation] ?? '', before)
  return {
    ...annotations,
    [revisionAnnotation]: String(revision),
    ...(history !== undefined && { [historyAnnotation]: history }),
  }
}

/** The earlier revisions, of which the first are dropped where they become too many. */
function historyWith(history: string, revision: string): string {
  const revisions = history === '' ? [] : history.split(',')
  for (let from = 0; from <= revisions.length; from++) {
    const text = [...revisions.slice(from), revision].join()
    if (text.length <= longestHistory) return text
  }
  return history
}

/** The ReplicaSet that the present template gets; `sets`: those that are there. */
export function newReplicaSet(
  deployment: StoredObject<'deployments'>,
  sets: readonly ReplicaSet[],
  revision: bigint,
): ReplicaSet {
  const { metadata, spec, status } = deployment
  const hash = templateHash(spec.template, status?.collisionCount)
  const labels = { ...spec.template.metadata?.labels, [templateHashLabel]: hash }
  const template = { ...spec.template, metadata: { ...spec.template.metadata, labels } }
  const matchLabels = { ...spec.selector?.matchLabels, [templateHashLabel]: hash }
  const empty: ReplicaSet = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: `${metadata.name}-${hash}`,
      ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
      ownerReferences: [controllerReference(deployment)],
      labels,
      annotations: { ...newSetAnnotations(deployment, {}, revision), ...sizeAnnotations(deployment) },
    },
    spec: {
      replicas: 0,
      ...(spec.minReadySeconds !== undefined && { minReadySeconds: spec.minReadySeconds }),
      selector: { ...spec.selector, matchLabels },
      template,
    },
  }
  return { ...empty, spec: { ...empty.spec, replicas: sizeOfNewSet(deployment, [...sets, empty], empty) } }
}
