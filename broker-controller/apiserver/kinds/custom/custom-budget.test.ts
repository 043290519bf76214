/** The largest definitions, and the objects that cost most to compare with their schema, hold the event loop for 100 ms at most. */
import { test } from 'tap'
import type { JSONSchemaProps } from '../../../../api/structural/json-schema-props.ts'
import { systemClock } from '../../../../daemon/clock.ts'
import { budgetMs, turnCost } from '../../../../daemon/testing/turn-budget.ts'
import { budgetedApi } from '../../../testing/budget/budgeted-api.ts'
import { aDefinition, definitionsPath } from '../../../testing/custom-api.ts'
import { defaultedObject } from '../../structural/defaulting.ts'
import { valueProblems } from '../../structural/value-problems.ts'

test('a definition with as many values as it may have is written in time', async (t) => {
  const fields = Array.from({ length: 16_000 }, (_, number) => [
    `field${number}`,
    { type: 'string', pattern: '^[a-z]+$', description: 'x' },
  ])
  const body = JSON.stringify(
    aDefinition({ type: 'object', properties: { spec: { type: 'object', properties: Object.fromEntries(fields) } } }),
  )
  const { send, world } = await budgetedApi({ clock: systemClock })
  const key = { namespace: '', name: 'shops.example.com' }
  const prepare = () => world.store.delete('customresourcedefinitions', key).catch(() => undefined)
  const post = () => send({ method: 'POST', path: definitionsPath, body })
  t.match(await turnCost({ what: 'POST', bytes: body.length, prepare, act: post }), { result: 201 })
  const { ms } = await turnCost({ what: 'POST', bytes: body.length, prepare, act: post })
  t.ok(ms <= budgetMs, `POST: ${ms.toFixed(0)} ms`)
  let label = 0
  const patch = () =>
    send({
      method: 'PATCH',
      type: 'merge-patch+json',
      path: `${definitionsPath}/${key.name}`,
      body: JSON.stringify({ metadata: { labels: { a: `${label++}` } } }),
    })
  const changed = await turnCost({ what: 'PATCH', bytes: body.length, act: patch })
  t.equal(changed.result, 200)
  t.ok(changed.ms <= budgetMs, `PATCH: ${changed.ms.toFixed(0)} ms`)
})

test('an object is compared with its schema in time, whatever the schema asks', async (t) => {
  const text: JSONSchemaProps = { type: 'string' }
  let branches: JSONSchemaProps = { properties: { a: { minLength: 1_000, pattern: 'x' } } }
  for (let level = 0; level < 8; level++) branches = { oneOf: Array.from({ length: 10 }, () => branches) }
  const items: JSONSchemaProps = { ...text, pattern: '^(a|b|ab|ba|aab)*c$' }
  const many = Array.from({ length: 900 }, (_, n) => `\\x{${(0x1000 + 3 * n).toString(16)}}`).join('')
  const durations = Array.from({ length: 6_000 }, () => '1'.repeat(250))
  const cases: readonly (readonly [what: string, schema: JSONSchemaProps, value: unknown])[] = [
    ['alternatives', { type: 'object', properties: { a: text }, ...branches }, { a: 'x' }],
    ['a pattern on a long text', items, 'ab'.repeat(500_000)],
    ['a pattern on many texts', { type: 'array', items }, Array.from({ length: 16_000 }, () => 'abab')],
    ['a class with many characters', { ...text, pattern: `(?i)[${many}]{900}!` }, 'é'.repeat(100_000)],
    ['texts that are almost durations', { type: 'array', items: { ...text, format: 'duration' } }, durations],
    ['items of the wrong type', { type: 'array', items: text }, Array.from({ length: 16_000 }, () => 1)],
  ]
  for (const [what, schema, value] of cases) {
    const { ms } = await turnCost({ what, bytes: 0, act: async () => valueProblems(schema, value, '') })
    t.ok(ms <= budgetMs, `${what}: ${ms.toFixed(0)} ms`)
  }
})

test('an object gets its defaults in time, whatever properties its items could have', async (t) => {
  const properties = Object.fromEntries(Array.from({ length: 16_000 }, (_, n) => [`field${n}`, { type: 'integer' }]))
  const items: JSONSchemaProps = { type: 'object', properties }
  const schema: JSONSchemaProps = { type: 'object', properties: { list: { type: 'array', items } } }
  const object = { list: Array.from({ length: 16_000 }, () => ({})) }
  const { ms } = await turnCost({ what: 'defaults', bytes: 0, act: async () => defaultedObject(schema, object) })
  t.ok(ms <= budgetMs, `defaults: ${ms.toFixed(0)} ms`)
})
