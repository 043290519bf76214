/** meta.k8s.io/v1 Table: what `kubectl get` prints, computed here. */
import type { AnyObject } from '../../../api/meta.ts'
import type { RowCondition, TableCell } from './cells.ts'
import { type KindStrategy, shownForm } from './strategy.ts'

export type IncludeObject = 'Metadata' | 'Object' | 'None'
export type ListMeta = {
  readonly resourceVersion?: string
  readonly continue?: string
  readonly remainingItemCount?: number
}
export type TableOptions = {
  readonly nowMs: number
  readonly listMeta: ListMeta
  /** What each row carries beside its cells; without it kubectl can show neither namespace nor labels. */
  readonly includeObject: IncludeObject
}

/** The objects, all of that kind, as rows. */
export function tableOf(kind: KindStrategy, objects: readonly AnyObject[], options: TableOptions) {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: options.listMeta,
    columnDefinitions: kind.table.columns.map((column) => ({ format: '', description: '', ...column })),
    rows: objects.map((object) => rowOf(kind, object, options)),
  }
}

type Row = {
  readonly cells: readonly TableCell[]
  readonly conditions?: readonly RowCondition[]
  readonly object?: unknown
}

function rowOf(kind: KindStrategy, object: AnyObject, { nowMs, includeObject }: TableOptions): Row {
  const { table } = kind
  const conditions = table.rowConditions?.(object)
  return {
    cells: table.cells(object, nowMs),
    ...(conditions === undefined ? {} : { conditions }),
    ...(includeObject === 'None'
      ? {}
      : { object: includeObject === 'Object' ? shownForm(kind, object) : metadataOf(object) }),
  }
}

function metadataOf({ metadata }: AnyObject) {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata }
}
