import { test } from 'tap'
import type { JSONSchemaProps } from '../../../../api/structural/json-schema-props.ts'
import { compiledRule } from './compiled-rules.ts'
import { declaredType } from './declared-type.ts'

const list = (items: JSONSchemaProps, maxItems?: number): JSONSchemaProps => ({
  type: 'array',
  items,
  ...(maxItems !== undefined && { maxItems }),
})
const map = (additionalProperties: JSONSchemaProps, maxProperties?: number): JSONSchemaProps => ({
  type: 'object',
  additionalProperties,
  ...(maxProperties !== undefined && { maxProperties }),
})
const text = (maxLength?: number): JSONSchemaProps => ({
  type: 'string',
  ...(maxLength !== undefined && { maxLength }),
})
const number: JSONSchemaProps = { type: 'number' }
const object = (properties: { readonly [name: string]: JSONSchemaProps }, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
})

/** Costs that Kubernetes estimates (TestCostEstimation in apiextensions-apiserver/pkg/apiserver/schema/cel/compilation_test.go). */
const cases: readonly (readonly [rule: string, schema: JSONSchemaProps, cost: number])[] = [
  ['self.all(x, true)', list(number), 4_718_591],
  ['self.all(x, true)', list(number, 10), 32],
  ['self.all(x, true)', list(text()), 3_145_727],
  ['self.all(x, true)', list({ type: 'boolean' }), 1_887_437],
  ['self.all(x, true)', list(list(number)), 3_145_727],
  ['self.all(x, true)', map(number), 1_348_169],
  ['self.all(x, true)', map(text()), 1_179_647],
  ['self.all(x, true)', list({ type: 'string', format: 'date-time' }), 428_963],
  ["self.contains('test')", text(), 314_574],
  ["self.contains('test')", text(10), 5],
  ["self.startsWith('test')", text(), 2],
  ['size(self + "hello") > size("hello")', text(), 314_578],
  ['size(self + "hello") > size("hello")', text(4), 7],
  ['self[1] == 0.0', list(number), 2],
  ['self[1] == self[1]', list(text(), 8), 314_577],
  ['self.all(x, self.all(y, true))', list(number, 10), 352],
  ['self.all(x, self.all(y, self.all(z, true)))', list(number, 10), 3_552],
  ['self.matches("x")', text(50), 22],
  ['"".matches("(((((((((())))))))))[0-9]")', text(), 7],
  ['self.matches("")', text(), 1],
  ['self == "x"', text(), 2],
  ['self == "x"', text(0), 1],
  ['self[0] == 5', list({ 'x-kubernetes-int-or-string': true }), 3],
  ['self[0] == null', list(object({})), 2],
  ['self[0][0] == -1.0', list(list(number)), 3],
  ['self.all(x, x.y == 25.2)', list(map(number), 12), 74],
  ['self[0].x > 2.0', list(map(number)), 4],
  ['self[0].getHours() == 2', list({ type: 'string', format: 'duration' }), 4],
]

for (const [rule, schema, wanted] of cases) {
  test(`${rule} of ${JSON.stringify(schema)} is estimated to cost ${wanted}`, async (t) => {
    const declared = declaredType(schema, false)
    if (declared === undefined) throw new Error('no type')
    const { condition, problem } = compiledRule({ rule }, declared)
    t.equal(problem, undefined)
    t.equal(condition?.cost, wanted)
  })
}
