/**
 * Who set which field of an object, over its life: `metadata.managedFields` (staging/src/k8s.io/apimachinery/pkg/util/
 * managedfields/internal; sigs.k8s.io/structured-merge-diff, merge/update.go). Pure: objects and managers in, managers out.
 */
import type { AnyObject } from '../../../api/meta.ts'
import type { TSchema } from '../../../api/schema.ts'
import { mergedValue, prunedValue } from './applied.ts'
import { applyConflict, type ContestedFields } from './apply-conflict.ts'
import {
  difference,
  equalSets,
  type FieldSet,
  intersection,
  isEmptySet,
  noFields,
  setOfPaths,
  union,
  unionOf,
  without,
} from './field-set.ts'
import { lastAppliedFields, lastAppliedPath, withLastApplied } from './last-applied.ts'
import type { Manager, Writer } from './managed-entries.ts'
import { type Comparison, compareValues, fieldsOfValue } from './typed-fields.ts'

/** What a write is about. `now`: RFC 3339. `reset`: fields that a write to this path does not change (GetResetFields). */
export type ManagedWrite = {
  readonly schema: TSchema
  readonly writer: Writer
  readonly now: string
  readonly reset: FieldSet
}

/**
 * By apiVersion, where the fields of the object differ between versions: the object of the write in that version. undefined: the version is
 * gone, and so are its managers. Other versions have the same fields.
 */
export type OtherVersions = ReadonlyMap<string, VersionedChange | undefined>
type VersionedChange = { readonly schema: TSchema; readonly before: AnyObject; readonly after: AnyObject }

/** Update entries beyond these are joined, oldest first (DefaultMaxUpdateManagers). */
const mostUpdateManagers = 10
const joinedManager = 'ancient-changes'
/** Owns what was there before the first apply (managedfields/internal/skipnonapplied.go). */
const beforeFirstApply = 'before-first-apply'
/** kubectl may go over from client-side apply without a conflict. */
const kubectl = 'kubectl'

/** What the server sets, and what identifies the object, belongs to no manager (managedfields/internal/stripmeta.go). */
const unmanaged = setOfPaths([
  'apiVersion',
  'kind',
  ...['name', 'namespace', 'creationTimestamp', 'selfLink', 'uid', 'generation', 'managedFields', 'resourceVersion']
    .concat('deletionTimestamp', 'deletionGracePeriodSeconds')
    .map((name) => `metadata.${name}`),
])

/**
 * The managers after an update of `before` to `after`: the writer owns what it changed, and what is gone has no owner.
 * An object that was stored without managers stays without them until its first apply, as in Kubernetes.
 */
export function afterUpdate(
  before: AnyObject | undefined,
  after: AnyObject,
  managers: readonly Manager[],
  write: ManagedWrite,
  versions: OtherVersions = sameFields,
): readonly Manager[] {
  if (before !== undefined && managers.length === 0) return managers
  const { changed, removed } = managedChange(before, after, write)
  if (isEmptySet(changed) && isEmptySet(removed)) return joined(managers)
  const own = managers.find((one) => isWriter(one, write.writer))
  const lossFor = lossesByVersion(lossBy({ changed, removed }), write, versions)
  const others = managers.filter((one) => one !== own).flatMap((one) => lessened(one, lossFor(one)))
  const grown = union(difference(own?.set ?? noFields, removed), changed)
  const set = own !== undefined && equalSets(grown, own.set) ? own.set : grown
  if (isEmptySet(set)) return joined(others)
  const time = isEmptySet(changed) ? own?.time : write.now
  return joined([...others, { ...write.writer, time, set }])
}

/** What an applier wants the object to be. */
export type Applied = {
  /** Not yet decoded. */
  readonly object: unknown
  readonly set: FieldSet
  /** Before the write. */
  readonly managers: readonly Manager[]
  /** Fields that the server changed in the object by itself, without an owner. */
  readonly own: FieldSet
}

/** The stored object with what the applier wants. `live` is undefined for a new one. */
export function applied(
  live: AnyObject | undefined,
  given: unknown,
  managers: readonly Manager[],
  write: ManagedWrite,
): Applied {
  const { schema, writer, reset } = write
  const named = without(fieldsOfValue(schema, given), reset)
  const set = without(named, unmanaged)
  const present = live === undefined || managers.length > 0 ? managers : untracked(live, write)
  const last = present.find((one) => isWriter(one, writer))?.set ?? noFields
  const dropped = difference(last, set)
  // Also what no manager owns: metadata stays for the name in it.
  const owned = () => unionOf([named, ...present.filter((one) => !isWriter(one, writer)).map((one) => one.set)])
  const merged = mergedValue(schema, live, given)
  const object = isEmptySet(dropped) ? merged : prunedValue(schema, merged, dropped, owned())
  const updated = writer.manager === kubectl ? withLastApplied(object, given) : undefined
  return { object: updated ?? object, set, managers: present, own: updated === undefined ? noFields : lastAppliedPath }
}

/**
 * The managers after an apply whose object became `after`. Throws ApiError Conflict, with a cause for each field that
 * another manager owns and the applier changes, unless `force`.
 */
export function afterApply(
  live: AnyObject | undefined,
  after: AnyObject,
  { set, managers, own: ownChanges }: Applied,
  write: ManagedWrite,
  force: boolean,
  versions: OtherVersions = sameFields,
): readonly Manager[] {
  const change = managedChange(live, after, write)
  const changed = without(change.changed, ownChanges)
  const own = managers.find((one) => isWriter(one, write.writer))
  const others = managers.filter((one) => one !== own)
  const lossFor = lossesByVersion(lossBy({ changed, removed: change.removed }), write, versions)
  if (!force) refuseConflicts(live, others, lossFor, write)
  const left = others.flatMap((one) => lessened(one, lossFor(one)))
  if (isEmptySet(set)) return left
  if (own === undefined) return [...left, { ...write.writer, time: write.now, set }]
  const hasSameSet = equalSets(own.set, set)
  const isSame = hasSameSet && isEmptySet(changed) && isEmptySet(change.removed)
  return [...left, isSame ? own : { ...write.writer, time: write.now, set: hasSameSet ? own.set : set }]
}

function refuseConflicts(
  live: AnyObject | undefined,
  others: readonly Manager[],
  lossFor: (manager: Manager) => Loss | undefined,
  { schema, writer }: ManagedWrite,
): void {
  const conflictsBut = (allowed: FieldSet): readonly ContestedFields[] =>
    others.flatMap((manager) => {
      const changed = lossFor(manager)?.changed ?? noFields
      if (isEmptySet(changed)) return []
      const fields = difference(intersection(manager.set, changed), allowed)
      return isEmptySet(fields) ? [] : [{ manager, fields }]
    })
  if (conflictsBut(noFields).length === 0) return
  const conflicts = conflictsBut(writer.manager === kubectl ? lastAppliedFields(live, schema) : noFields)
  if (conflicts.length > 0) throw applyConflict(conflicts)
}

function managedChange(
  before: AnyObject | undefined,
  after: AnyObject,
  { schema, reset }: Pick<ManagedWrite, 'schema' | 'reset'>,
): Comparison {
  // A new object has its parts as Go has them: there, and empty.
  const { changed, removed } = compareValues(schema, before ?? { metadata: {}, spec: {}, status: {} }, after)
  const managed = (set: FieldSet) => (isEmptySet(set) ? noFields : without(without(set, unmanaged), reset))
  return { changed: managed(changed), removed: managed(removed) }
}

function untracked(live: AnyObject, { schema, now, reset, writer }: ManagedWrite): readonly Manager[] {
  const set = managedChange(undefined, live, { schema, reset }).changed
  if (isEmptySet(set)) return []
  return [{ ...writer, manager: beforeFirstApply, operation: 'Update', time: now, set }]
}

/** An applier is the same in every version of the API (BuildManagerIdentifier). */
function isWriter(one: Manager, { manager, operation, apiVersion, subresource }: Writer): boolean {
  if (one.manager !== manager || one.operation !== operation || one.subresource !== subresource) return false
  return operation === 'Apply' || one.apiVersion === apiVersion
}

const sameFields: OtherVersions = new Map()

/** A change, and the fields that other managers lose with it. */
type Loss = { readonly changed: FieldSet; readonly lost: FieldSet }

function lossBy({ changed, removed }: Comparison): Loss {
  return { changed, lost: union(changed, removed) }
}

/** The change as each manager sees it: in the version that its fields are of. undefined: that version is gone. */
function lossesByVersion(
  own: Loss,
  { writer, reset }: ManagedWrite,
  versions: OtherVersions,
): (manager: Manager) => Loss | undefined {
  if (versions.size === 0) return () => own
  const losses = new Map<string, Loss | undefined>([[writer.apiVersion, own]])
  return ({ apiVersion }) => {
    if (losses.has(apiVersion)) return losses.get(apiVersion)
    const other = versions.get(apiVersion)
    const change = other && managedChange(other.before, other.after, { schema: other.schema, reset })
    const loss = change === undefined ? (versions.has(apiVersion) ? undefined : own) : lossBy(change)
    losses.set(apiVersion, loss)
    return loss
  }
}

/** The manager with the rest of its fields; none where it has no field left, or its version is gone. */
function lessened(one: Manager, by: Loss | undefined): readonly Manager[] {
  if (by === undefined) return []
  const set = difference(one.set, by.lost)
  if (set === one.set) return [one]
  return isEmptySet(set) ? [] : [{ ...one, set }]
}

/** Joins the oldest updates beyond the limit (managedfields/internal/capmanagers.go). */
function joined(managers: readonly Manager[]): readonly Manager[] {
  const updates = managers.filter(({ operation }) => operation === 'Update')
  const tooMany = updates.length - mostUpdateManagers
  if (tooMany <= 0) return managers
  // The joined entry takes a place, too.
  const oldest = updates.toSorted(byAge).slice(0, tooMany + 1)
  const gone = new Set(oldest)
  const rest = managers.filter((one) => !gone.has(one))
  const [first] = oldest
  const last = oldest.at(-1)
  if (first === undefined || last === undefined) return managers
  const bucket = { ...last, manager: joinedManager, subresource: '' }
  const earlier = rest.find((one) => isWriter(one, bucket))
  const set = unionOf([...oldest, ...(earlier === undefined ? [] : [earlier])].map((one) => one.set))
  return [...rest.filter((one) => one !== earlier), { ...bucket, set }]
}

function byAge(a: Manager, b: Manager): number {
  const [one, other] = [a.time ?? '', b.time ?? '']
  if (one !== other) return one < other ? -1 : 1
  return a.manager < b.manager ? -1 : 1
}
