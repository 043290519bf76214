import { test } from 'tap'
import {
  anything,
  bool,
  bytes,
  double,
  integer,
  intOrString,
  keywordsOf,
  list,
  mapOf,
  microTime,
  numberOrText,
  object,
  oneOf,
  quantity,
  text,
  time,
} from '../../../api/schema.ts'
import { schemaShape } from './schema-shape.ts'

test('each schema of a field has one shape, the first that applies', async (t) => {
  const cases = [
    [list(text), 'list'],
    [mapOf(text), 'map'],
    [object({ name: text }), 'object'],
    [quantity, 'quantity'],
    [intOrString, 'intOrString'],
    [time, 'time'],
    [microTime, 'microTime'],
    [oneOf('Always', 'Never'), 'choice'],
    [oneOf('v1'), 'choice'],
    [numberOrText, 'choice'],
    [integer, 'integer'],
    [double, 'number'],
    [text, 'plain'],
    [bool, 'plain'],
    [bytes, 'plain'],
    [anything, 'any'],
  ] as const
  for (const [schema, shape] of cases) t.equal(schemaShape(keywordsOf(schema)), shape, JSON.stringify(schema))
  t.equal(schemaShape({ type: 'array' }), 'plain', 'a list of which nothing is stated')
})
