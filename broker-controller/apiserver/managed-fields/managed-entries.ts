/** The managers of an object, read from and written as `metadata.managedFields` (managedfields/internal/managedfields.go). */
import type { ManagedFieldsEntry } from '../../../api/meta.ts'
import { recentlyUsed } from '../../store/object-json.ts'
import { type FieldSet, formatFieldsV1, parseFieldsV1, sizeOfSet } from './field-set.ts'

/** A client that writes: its name, how, and which part of the object. */
export type Writer = {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  /** '' for the object itself. */
  readonly subresource: string
}

export type Manager = Writer & {
  /** RFC 3339: of the last change by this manager. */
  readonly time: string | undefined
  readonly set: FieldSet
}

/** Elements of sets that are kept read: those of the objects that are written now. */
const keptElements = 65_536
const keptForMs = 30_000
const readSets = recentlyUsed<FieldSet>(keptElements, keptForMs)
/** A set that did not change is stored as the object it was read from. */
const written = new WeakMap<FieldSet, NonNullable<ManagedFieldsEntry['fieldsV1']>>()

/** The managers in managedFields; undefined: an entry cannot be read. The last entry of a writer counts. */
export function managersOf(entries: readonly ManagedFieldsEntry[] = []): readonly Manager[] | undefined {
  const managers = new Map<string, Manager>()
  for (const { manager = '', operation, apiVersion = '', subresource = '', time, fieldsType, fieldsV1 } of entries) {
    if (fieldsType !== 'FieldsV1' || apiVersion === '' || (operation !== 'Apply' && operation !== 'Update')) return
    const set = setOf(fieldsV1)
    if (set === undefined) return
    const version = operation === 'Apply' ? '' : apiVersion
    const identity = `${operation}\n${version}\n${subresource}\n${manager}`
    managers.set(identity, { manager, operation, apiVersion, subresource, time, set })
  }
  return [...managers.values()]
}

function setOf(fieldsV1: unknown): FieldSet | undefined {
  if (typeof fieldsV1 !== 'object' || fieldsV1 === null) return parseFieldsV1(fieldsV1 ?? {})
  const known = readSets.get(fieldsV1)
  if (known !== undefined) return known
  const set = parseFieldsV1(fieldsV1)
  // Only what the store holds is never changed.
  if (set !== undefined && Object.isFrozen(fieldsV1)) {
    readSets.set(fieldsV1, set, sizeOfSet(set))
    written.set(set, fieldsV1)
  }
  return set
}

/** managedFields of these managers, in the order of Kubernetes: appliers first, then by time and name. */
export function managedFieldsOf(managers: readonly Manager[]): readonly ManagedFieldsEntry[] {
  return managers.toSorted(byRank).map(({ manager, operation, apiVersion, subresource, time, set }) => ({
    manager,
    operation,
    apiVersion,
    ...(time !== undefined && { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: written.get(set) ?? formatFieldsV1(set),
    ...(subresource !== '' && { subresource }),
  }))
}

function byRank(a: Manager, b: Manager): number {
  return (
    inOrder(a.operation, b.operation) ||
    inOrder(a.time ?? '', b.time ?? '') ||
    inOrder(a.manager, b.manager) ||
    inOrder(a.apiVersion, b.apiVersion) ||
    inOrder(a.subresource, b.subresource)
  )
}

const inOrder = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1)
