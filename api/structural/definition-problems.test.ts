import { test } from 'tap'
import { readWith } from '../decode.ts'
import { problemText } from '../problem.ts'
import {
  type CustomResourceDefinition,
  type DefinedVersion,
  type DefinitionSpec,
  definitionReader,
} from './custom-resource-definition.ts'
import { definitionChangeProblems, definitionProblems } from './definition-problems.ts'

const version = (more: Partial<DefinedVersion> = {}): DefinedVersion => ({
  name: 'v1',
  served: true,
  storage: true,
  schema: { openAPIV3Schema: { type: 'object' } },
  ...more,
})
const names = { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' }
const definition = (spec: Partial<DefinitionSpec> = {}, storedVersions = ['v1']): CustomResourceDefinition => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: { group: 'example.com', names, scope: 'Namespaced', versions: [version()], ...spec },
  status: { storedVersions },
})
const found = (...given: Parameters<typeof definition>) => definitionProblems(definition(...given)).map(problemText)
const ofVersion = (more: Partial<DefinedVersion>) => found({ versions: [version(more)] })
const at = 'spec.versions[0]'

test('a definition is read with the schemas of its versions, unknown keywords named', async (t) => {
  const sent = definition({ versions: [version({ schema: { openAPIV3Schema: { type: 'object', types: 1 } } })] })
  const read = readWith(definitionReader, sent)
  t.match(read, { ok: true, value: definition(), unknownFields: [`${at}.schema.openAPIV3Schema.types`] })
  const wrong = readWith(definitionReader, definition({ versions: [version({ schema: { openAPIV3Schema: 3 } })] }))
  t.match(wrong, { ok: false, problems: [{ field: `${at}.schema.openAPIV3Schema` }] })
  t.match(readWith(definitionReader, { spec: 1 }), { ok: false })
})

test('a definition has a name, a group and names that are unambiguous', async (t) => {
  t.same(found(), [])
  t.same(found({ group: 'example' }), [
    'metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."+spec.group',
    'spec.group: Invalid value: "example": should be a domain with at least one dot',
  ])
  t.same(found({ scope: 'Node' }), ['spec.scope: Unsupported value: "Node": supported values: "Cluster", "Namespaced"'])
  t.same(found({ names: { ...names, singular: '', listKind: 'Widget' } }), [
    'spec.names.singular: Required value',
    'spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same',
  ])
  t.match(found({ names: { ...names, kind: 'Wid_get', shortNames: ['W'] } }), [
    /^spec\.names\.kind: Invalid value: "Wid_get": may have mixed case, but should otherwise match: a DNS-1035 label/,
    /^spec\.names\.shortNames\[0\]: Invalid value: "W": a DNS-1035 label/,
  ])
})

test('exactly one version is stored, and each has a schema', async (t) => {
  t.same(found({ versions: [version(), version()] }), [
    'spec.versions: Invalid value: "2 versions": must contain unique version names',
    'spec.versions: Invalid value: "2 versions": must have exactly one version marked as storage version',
  ])
  t.same(ofVersion({ schema: {} }), [`${at}.schema.openAPIV3Schema: Required value: schemas are required`])
  t.same(ofVersion({ schema: { openAPIV3Schema: { type: 'object', nullable: true } } }), [
    `${at}.schema.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root`,
  ])
  const branches = { type: 'object', not: { required: ['a'] } }
  t.same(ofVersion({ schema: { openAPIV3Schema: branches } }), [])
  t.match(ofVersion({ schema: { openAPIV3Schema: branches }, subresources: { status: {} } }), [
    /openAPIV3Schema: Invalid value: "not": only .* fields are allowed at the root of the schema if the status subresource is enabled$/,
  ])
  t.same(found({}, []), ['status.storedVersions: Invalid value: []: must have at least one stored version'])
  t.same(found({}, ['v0']), [
    'status.storedVersions: Invalid value: ["v0"]: must have the storage version v1',
    'status.storedVersions[0]: Invalid value: "v0": must appear in spec.versions',
  ])
})

test('warnings, columns and paths of a scale are checked', async (t) => {
  t.same(ofVersion({ deprecationWarning: 'a' }), [
    `${at}.deprecationWarning: Invalid value: "a": can only be set for deprecated versions`,
  ])
  t.match(ofVersion({ deprecated: true, deprecationWarning: 'a'.repeat(257) }), [/must be <= 256 characters long$/])
  const column = { name: 'a', type: 'text', format: 'long', jsonPath: 'spec.a' }
  t.same(ofVersion({ additionalPrinterColumns: [column] }), [
    `${at}.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string`,
    `${at}.additionalPrinterColumns[0].format: Invalid value: "long": must be one of byte,date,date-time,double,float,int32,int64,password`,
    `${at}.additionalPrinterColumns[0].jsonPath: Invalid value: "spec.a": must be a simple json path starting with .`,
  ])
  const scale = { specReplicasPath: '.status.replicas', statusReplicasPath: '', labelSelectorPath: '.metadata.a' }
  t.same(ofVersion({ subresources: { scale } }), [
    `${at}.subresources.scale.specReplicasPath: Invalid value: ".status.replicas": should be a json path under .spec`,
    `${at}.subresources.scale.statusReplicasPath: Required value`,
    `${at}.subresources.scale.labelSelectorPath: Invalid value: ".metadata.a": should be a json path under either .spec or .status`,
  ])
})

test('group and plural never change; scope and kind do until the kind is established', async (t) => {
  const { spec } = definition()
  const changed = (more: Partial<DefinitionSpec>, isEstablished: boolean) =>
    definitionChangeProblems(spec, { ...spec, ...more }, isEstablished).map(problemText)
  const other = { scope: 'Cluster', names: { ...names, kind: 'Other' } }
  t.same(changed(other, false), [])
  t.same(changed(other, true), [
    'spec.scope: Invalid value: "Cluster": field is immutable',
    'spec.names.kind: Invalid value: "Other": field is immutable',
  ])
  t.same(changed({ group: 'example.org' }, false), ['spec.group: Invalid value: "example.org": field is immutable'])
})
