import { test } from 'tap'
import type { AnyObject } from '../../../../api/meta.ts'
import type { DefinedColumn } from '../../../../api/structural/custom-resource-definition.ts'
import { customTable } from './custom-columns.ts'

const nowMs = Date.parse('2026-01-02T00:00:00Z')
const column = (type: string, jsonPath: string, more: Partial<DefinedColumn> = {}): DefinedColumn => ({
  ...{ name: 'C', type, jsonPath },
  ...more,
})
const as = (spec: unknown): AnyObject => ({
  ...{ apiVersion: 'example.com/v1', kind: 'Lamp' },
  metadata: { name: 'hall', creationTimestamp: '2026-01-01T00:00:00Z' },
  ...{ spec },
})

/** The second cell. */
function cell(type: string, value: unknown) {
  const { cells } = customTable([column(type, '.spec.value')], (object) => object)
  return cells(as({ value }), nowMs)[1]
}

test('a kind without columns shows its age', async (t) => {
  const { columns, cells } = customTable(undefined, (object) => object)
  t.match(columns, [{ name: 'Name' }, { name: 'Age', type: 'date' }])
  t.same(cells(as({}), nowMs), ['hall', '24h'])
})

test('columns have the description, format and priority of the definition', async (t) => {
  const { columns } = customTable(
    [column('string', '.spec.a'), column('string', '.spec.b', { description: 'B', format: 'uri', priority: 1 })],
    (object) => object,
  )
  t.same(columns.slice(1), [
    {
      ...{ name: 'C', type: 'string', priority: 0 },
      description: 'Custom resource definition column (in JSONPath format): .spec.a',
    },
    { name: 'C', type: 'string', priority: 1, description: 'B', format: 'uri' },
  ])
})

test('a cell has a value of the type of its column, or none', async (t) => {
  const cases: readonly (readonly [string, unknown, unknown])[] = [
    ...([
      ['string', 'on', 'on'],
      ['string', 7, '7'],
      ['string', false, 'false'],
      ['string', { a: [1] }, '{"a":[1]}'],
      ['integer', 7, 7],
      ['integer', 7.9, 7],
      ['integer', -7.9, -7],
      ['integer', '7', null],
      ['number', 0.5, 0.5],
      ['number', true, null],
      ['boolean', false, false],
      ['boolean', 'false', null],
      ['date', '2026-01-01T23:00:00Z', '60m'],
      ['date', 'yesterday', '<invalid>'],
      ['date', 7, null],
      ['object', {}, null],
      ['string', undefined, null],
      ['string', null, null],
    ] as const),
  ]
  for (const [type, value, shown] of cases) t.equal(cell(type, value), shown, `${type} ${JSON.stringify(value)}`)
})

test('cells show the object as clients see it, and a path that cannot be read shows nothing', async (t) => {
  const shown = (object: AnyObject): AnyObject => ({ ...object, spec: { value: 'a default' } })
  const { cells } = customTable([column('string', '.spec.value'), column('string', '.spec[')], shown)
  t.same(cells(as({}), nowMs), ['hall', 'a default', null])
})
