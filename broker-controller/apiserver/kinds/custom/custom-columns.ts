/** The table of a custom kind (registry/customresource/tableconvertor/tableconvertor.go). */
import type { AnyObject } from '../../../../api/meta.ts'
import type { DefinedColumn } from '../../../../api/structural/custom-resource-definition.ts'
import { type Column, humanDuration, type TableCell, type TableOf } from '../../handlers/cells.ts'
import { parseObjectPath } from '../../structural/simple-path.ts'

const nameColumn: Column = { name: 'Name', type: 'string', format: 'name', priority: 0 }
const ageColumn: DefinedColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }

/** `shown`: the object as clients see it, whose defaults cells show. */
export function customTable(
  columns: readonly DefinedColumn[] = [],
  shown: (stored: AnyObject) => AnyObject,
): TableOf<AnyObject> {
  const given = columns.length === 0 ? [ageColumn] : columns
  const paths = given.map(({ jsonPath, type }) => ({ path: parseObjectPath(jsonPath), type }))
  return {
    columns: [nameColumn, ...given.map(columnOf)],
    cells(object, nowMs) {
      const visible = shown(object)
      return [object.metadata.name ?? '', ...paths.map(({ path, type }) => cellOf(type, path?.first(visible), nowMs))]
    },
  }
}

function columnOf({ name, type, format, description, priority = 0, jsonPath }: DefinedColumn): Column {
  const plain = `Custom resource definition column (in JSONPath format): ${jsonPath}`
  return { name, type, priority, description: description || plain, ...(format !== undefined && { format }) }
}

function cellOf(type: string, value: unknown, nowMs: number): TableCell {
  if (value === undefined || value === null) return null
  switch (type) {
    case 'string':
      return typeof value === 'object' ? JSON.stringify(value) : String(value)
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null
    case 'number':
      return typeof value === 'number' ? value : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date': {
      if (typeof value !== 'string') return null
      const at = Date.parse(value)
      return Number.isNaN(at) ? '<invalid>' : humanDuration(nowMs - at)
    }
    default:
      return null
  }
}
