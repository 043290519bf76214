import { test } from 'tap'
import type { ExtensionDescription } from '../aggregator/extension-description.ts'
import type { DocumentParts } from './document-parts.ts'
import { withDescriptions } from './merged-descriptions.ts'

type Content = { readonly [name: string]: { readonly [keyword: string]: unknown } }

const kindsField = 'x-kubernetes-group-version-kind'
const ref = (type: string) => ({ $ref: `#/definitions/${type}` })

function described(paths: Content, definitions: Content = {}, parameters: Content = {}): ExtensionDescription {
  const named = (all: Content) => new Map(Object.entries(all))
  const parts = { paths: named(paths), definitions: named(definitions), parameters: named(parameters) }
  return { hash: '', length: 0, parts: async () => parts }
}

function own(paths: Content, types: Content): DocumentParts {
  const made = Object.entries(types).map(([name, type]) => [name, () => type] as const)
  return { paths: new Map(Object.entries(paths)), types: new Map(made), parameters: new Map() }
}

async function merged(given: DocumentParts, ...descriptions: readonly ExtensionDescription[]) {
  const { paths, types, parameters } = await withDescriptions(given, descriptions)
  const made = [...types].map(([name, type]) => [name, type()] as const)
  return {
    paths: Object.fromEntries(paths),
    types: Object.fromEntries(made),
    parameters: Object.fromEntries(parameters),
  }
}

test('paths and types of an extension server are added to those of the fleet', async (t) => {
  const found = await merged(
    own({ '/a': {} }, { A: { type: 'object' } }),
    described({ '/b': { get: ref('B') } }, { B: { type: 'string' } }, { pretty: { name: 'pretty' } }),
  )
  t.same(found, {
    paths: { '/a': {}, '/b': { get: ref('B') } },
    types: { A: { type: 'object' }, B: { type: 'string' } },
    parameters: { pretty: { name: 'pretty' } },
  })
})

test('a type that has the name of another one is renamed, with all that refers to it', async (t) => {
  const { types, paths, parameters } = await merged(
    own({}, { Meta: { description: 'ours' }, Meta_v2: { description: 'ours too' } }),
    described(
      { '/b': { get: ref('B'), parameters: [{ $ref: '#/parameters/pretty' }] } },
      { B: { properties: { meta: ref('Meta'), all: { items: ref('Meta') } } }, Meta: { description: 'theirs' } },
      { pretty: { name: 'pretty', in: 'query' } },
    ),
    described(
      { '/c': { get: ref('C'), parameters: [{ $ref: '#/parameters/pretty' }] } },
      { C: ref('Meta'), Meta: { description: 'theirs' }, Meta_v3: { description: 'another' } },
      { pretty: { name: 'nice', in: 'query' } },
    ),
  )
  t.same(types, {
    Meta: { description: 'ours' },
    Meta_v2: { description: 'ours too' },
    B: { properties: { meta: ref('Meta_v3'), all: { items: ref('Meta_v3') } } },
    Meta_v3: { description: 'theirs' },
    C: ref('Meta_v3'),
    Meta_v3_v2: { description: 'another' },
  })
  t.same(paths['/c'], { get: ref('C'), parameters: [{ $ref: '#/parameters/pretty_v2' }] })
  t.same(parameters, { pretty: { name: 'pretty', in: 'query' }, pretty_v2: { name: 'nice', in: 'query' } })
})

test('a new name is not that of another type of the same server', async (t) => {
  const { types } = await merged(
    own({}, { A: { description: 'ours' } }),
    described({ '/b': {} }, { A: { description: 'theirs' }, A_v2: { description: 'another' } }),
  )
  t.same(types, { A: { description: 'ours' }, A_v2: { description: 'another' }, A_v3: { description: 'theirs' } })
})

test('the same type of two servers stands for the kinds of both', async (t) => {
  const kind = (group: string) => ({ group, version: 'v1', kind: 'Options' })
  const { types } = await merged(
    own({}, { Options: { type: 'object', [kindsField]: [kind('')] } }),
    described({ '/b': {} }, { Options: { [kindsField]: [kind('b')], type: 'object' } }),
    described({ '/c': {} }, { Options: { type: 'object', [kindsField]: [kind('b'), kind('c')] } }),
    described({ '/d': {} }, { Options: { type: 'object' } }),
  )
  t.same(types, { Options: { type: 'object', [kindsField]: [kind(''), kind('b'), kind('c')] } })
})

test('a path of the fleet stays, and types that only such a path needs are left out', async (t) => {
  const { paths, types } = await merged(
    own({ '/a': { get: ref('A') } }, { A: {} }),
    described({ '/a': { get: ref('Other') }, '/b': { get: ref('B') } }, { Other: {}, B: { items: ref('C') }, C: {} }),
    described({ '/a': { get: ref('Last') } }, { Last: {} }),
  )
  t.same(paths, { '/a': { get: ref('A') }, '/b': { get: ref('B') } })
  t.same(Object.keys(types), ['A', 'B', 'C'])
})

// kube-openapi, pkg/util/proto: an unknown model in a reference is an error of the whole document.
test('a reference that leads nowhere is taken out', async (t) => {
  const { paths, types } = await merged(
    own({}, { A: {} }),
    described(
      { '/b': { get: ref('A'), parameters: [{ $ref: '#/parameters/none' }, { name: 'x' }] } },
      { B: { properties: { a: ref('None'), $ref: { type: 'string' } } } },
    ),
  )
  t.same(paths['/b'], { get: { type: 'object' }, parameters: [{ name: 'x' }] })
  t.same(types['B'], { properties: { a: { type: 'object' }, $ref: { type: 'string' } } })
})
