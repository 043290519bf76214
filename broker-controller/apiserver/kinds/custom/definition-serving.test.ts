import { test } from 'tap'
import { problemText } from '../../../../api/problem.ts'
import type { CustomResourceDefinition, DefinedVersion } from '../../../../api/structural/custom-resource-definition.ts'
import { servingProblems } from './definition-serving.ts'

const schema: DefinedVersion['schema'] = {
  openAPIV3Schema: {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          name: { type: 'string', format: 'hostname' },
          size: { type: 'integer' },
          isOpen: { type: 'boolean' },
          price: { type: 'number' },
          any: { 'x-kubernetes-int-or-string': true },
          items: { type: 'array', items: { type: 'string' } },
          labels: { type: 'object', additionalProperties: { type: 'string' } },
          ...Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => [name, { type: 'string' }])),
        },
      },
    },
  },
}
const definition = (
  more: Partial<DefinedVersion> = {},
  group = 'example.com',
  annotations = {},
): CustomResourceDefinition => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `shops.${group}`, annotations },
  spec: {
    group,
    names: { plural: 'shops', kind: 'Shop' },
    scope: 'Namespaced',
    versions: [
      { name: 'v1', served: true, storage: true, schema },
      { name: 'v2', served: true, storage: false, schema, ...more },
    ],
  },
})
const selecting = (...paths: readonly string[]) =>
  servingProblems(definition({ selectableFields: paths.map((jsonPath) => ({ jsonPath })) })).map(problemText)
const at = 'spec.versions[1].selectableFields'

test('a definition without selectable fields is served, and so are those that have one value', async (t) => {
  t.same(servingProblems(definition()), [])
  t.same(selecting('.spec.name', '.spec.size', '.spec.isOpen'), [])
  t.same(selecting('.spec.a', '.spec.b', '.spec.c', '.spec.d', '.spec.e', '.spec.f', '.spec.g', '.spec.name'), [])
})

test('a selectable field is a path of names to a field with one value', async (t) => {
  const scalar =
    'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.'
  t.same(selecting(''), [`${at}[0].jsonPath: Required value`])
  for (const path of ['spec.name', '.spec.items[0]', ".spec['name']", '.', '.spec..name'])
    t.match(
      selecting(path),
      [/^spec\.versions\[1\]\.selectableFields\[0\]\.jsonPath: Invalid value: .*: is an invalid path/],
      path,
    )
  t.same(selecting('.spec.none', '.status.name'), [
    `${at}[0].jsonPath: Invalid value: ".spec.none": is an invalid path: does not refer to a valid field`,
    `${at}[1].jsonPath: Invalid value: ".status.name": is an invalid path: does not refer to a valid field`,
  ])
  for (const name of ['price', 'any', 'items', 'labels'])
    t.same(selecting(`.spec.${name}`), [`${at}[0].jsonPath: Invalid value: ".spec.${name}": ${scalar}`])
  t.same(selecting('.spec'), [`${at}[0].jsonPath: Invalid value: ".spec": ${scalar}`])
  t.same(selecting('.metadata.name'), [
    `${at}[0].jsonPath: Invalid value: ".metadata.name": must not point to fields in metadata`,
  ])
})

test('a version has eight selectable fields, each once', async (t) => {
  t.same(selecting('.spec.name', '.spec.size', '.spec.name'), [`${at}[2].jsonPath: Duplicate value: ".spec.name"`])
  const nine = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'name', 'size'].map((name) => `.spec.${name}`)
  t.same(selecting(...nine), [`${at}: Too many: 9: must have at most 8 items`])
})

test('the groups of the fleet are not defined, and those of Kubernetes with an approval only', async (t) => {
  const annotation = 'api-approved.kubernetes.io'
  const problems = (group: string, annotations = {}) =>
    servingProblems(definition({}, group, annotations)).map(problemText)
  t.same(problems('apps', {}), ['spec.group: Forbidden: the kinds of apps are served by the fleet itself'])
  t.same(problems('metrics.k8s.io', { [annotation]: 'unapproved, for a test' }), [
    'spec.group: Forbidden: the kinds of metrics.k8s.io are served by the fleet itself',
  ])
  t.match(problems('gateway.networking.k8s.io'), [
    /^metadata.annotations\[api-approved.kubernetes.io\]: Required value: protected groups must have approval annotation/,
  ])
  t.match(problems('gateway.networking.k8s.io', { [annotation]: 'yes' }), [
    /^metadata.annotations.*Invalid value: "yes"/,
  ])
  t.same(problems('gateway.networking.k8s.io', { [annotation]: 'https://example.com/pull/1' }), [])
})
