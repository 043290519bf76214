/**
 * Decides about the ControllerRevisions of an owner: which one is its present template, under which number, and which are too
 * many (pkg/controller/history, constructHistory in pkg/controller/daemon/update.go, getStatefulSetRevisions in
 * pkg/controller/statefulset/stateful_set_control.go). Pure.
 */
import { decode } from '../../../../api/decode.ts'
import { type Container, type PodTemplateSpec, PodTemplateSpecSchema } from '../../../../api/pod.ts'
import { isObject } from '../../../../api/text/json.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import type { StoredObject } from '../../../store/store.ts'
import { isSameTemplate } from '../deployments/template-hash.ts'

export type StoredRevision = StoredObject<'controllerrevisions'>

/** On revisions, and on the pods of a template (apps/v1 ControllerRevisionHashLabelKey). */
export const revisionLabel = 'controller-revision-hash'

/**
 * What a revision holds: the patch that brings its template back, which `kubectl rollout undo` sends as it is (getPatch). It is as
 * Go encodes it, in the order of the names and with the fields that Go always writes: clients find the revision of a template
 * by comparing bytes (Match in pkg/controller/daemon/update.go).
 */
export function revisionData(template: PodTemplateSpec): object {
  const { containers, initContainers, ...spec } = template.spec
  const content = {
    ...template,
    metadata: { creationTimestamp: null, ...template.metadata },
    spec: {
      ...spec,
      containers: containers.map(withResources),
      ...(initContainers && { initContainers: initContainers.map(withResources) }),
    },
    $patch: 'replace',
  }
  return { spec: { template: inOrder(content) } }
}

function withResources(container: Container): Container {
  return { resources: {}, ...container }
}

/** The value with the names of each object in their order. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (!isObject(value)) return value
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, inner]) => [name, inOrder(inner)]))
}

const decodedTemplates = new WeakMap<object, PodTemplateSpec>()

/** The template that the revision holds; undefined where it holds none. */
export function revisionTemplate({ data }: { readonly data?: unknown }): PodTemplateSpec | undefined {
  const before = isObject(data) ? decodedTemplates.get(data) : undefined
  if (before !== undefined) return before
  const spec = isObject(data) ? data['spec'] : undefined
  const template = isObject(spec) ? spec['template'] : undefined
  if (!isObject(template)) return undefined
  const { $patch: _, ...content } = template
  const decoded = decode(PodTemplateSpecSchema, content)
  if (!decoded.ok) return undefined
  // Stored objects are frozen: each template is decoded once.
  if (isObject(data)) decodedTemplates.set(data, decoded.value)
  return decoded.value
}

/**
 * Whether both hold the same template, in whatever form it was stored: earlier versions kept fields that are empty, and such a
 * template loses them with the next update of its owner. That must start no rollout.
 */
export function holdsSame(one: Pick<StoredRevision, 'data'>, other: Pick<StoredRevision, 'data'>): boolean {
  if (equalJSON(one.data, other.data)) return true
  const [template, wanted] = [revisionTemplate(one), revisionTemplate(other)]
  return template !== undefined && wanted !== undefined && isSameTemplate(template, wanted)
}

export type RevisionPlan = {
  /** The revision that holds the present template; undefined: it is to be created. */
  readonly current: StoredRevision | undefined
  /** What its number must be: more than that of each other template. */
  readonly number: number
  /** Further revisions with the same template. */
  readonly duplicates: readonly StoredRevision[]
  /** Those of other templates, in the order of their numbers. */
  readonly old: readonly StoredRevision[]
}

export function planRevision(revisions: readonly StoredRevision[], data: object): RevisionPlan {
  const ordered = inRevisionOrder(revisions)
  const equal = ordered.filter((revision) => holdsSame(revision, { data }))
  const old = ordered.filter((revision) => !equal.includes(revision))
  const newest = old.at(-1)?.revision ?? 0
  const current = equal.at(-1)
  return { current, number: Math.max(newest + 1, current?.revision ?? 0), duplicates: equal.slice(0, -1), old }
}

/** By number, then age, then name. */
function inRevisionOrder(revisions: readonly StoredRevision[]): readonly StoredRevision[] {
  const keyOf = ({ metadata }: StoredRevision) => `${metadata.creationTimestamp} ${metadata.name}`
  return revisions.toSorted((a, b) => (a.revision ?? 0) - (b.revision ?? 0) || (keyOf(a) < keyOf(b) ? -1 : 1))
}

/**
 * The oldest of `old`, which is in order, that are more than `limit`. Those that are live stay. `counted`: whether they count
 * towards the limit, as they do for a DaemonSet and do not for a StatefulSet.
 */
export function surplusRevisions(
  old: readonly StoredRevision[],
  limit: number,
  isLive: (revision: StoredRevision) => boolean,
  counted: 'all' | 'not-live',
): readonly StoredRevision[] {
  const others = old.filter((revision) => !isLive(revision))
  const excess = (counted === 'all' ? old.length : others.length) - limit
  return others.slice(0, Math.max(0, excess))
}
