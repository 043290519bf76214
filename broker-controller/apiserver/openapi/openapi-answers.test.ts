import { gunzipSync } from 'node:zlib'
import { test } from 'tap'
import type { APIService } from '../../../api/registration/api-service.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import type { StoredObject } from '../../store/store.ts'
import type { DiscoveryNeeds } from '../aggregator/discovery-needs.ts'
import { extensionDescription } from '../aggregator/extension-description.ts'
import type { ApiResponse } from '../wire/answers.ts'
import { openApiAnswer } from './openapi-answers.ts'

/** An extension server of each group that describes a type of that description. */
async function withServers(descriptions: {
  readonly [group: string]: { readonly text: string; readonly priority: number }
}) {
  const remotes = Object.entries(descriptions).map(([group, { priority }]) => {
    const service = { namespace: 'default', name: group }
    const spec = { group, version: 'v1', groupPriorityMinimum: priority, versionPriority: 1, service }
    return { metadata: { name: `v1.${group}` }, spec } as StoredObject<'apiservices'>
  })
  const read = Object.entries(descriptions).map(async ([group, { text }]) => {
    const paths = { [`/apis/${group}/v1/things`]: { get: { responses: {} } } }
    const definitions = { 'com.example.Shared': { type: 'object', description: text } }
    const body = JSON.stringify({ swagger: '2.0', paths, definitions })
    return [group, await extensionDescription(Buffer.from(body), { group, version: 'v1' })] as const
  })
  const described = new Map(await Promise.all(read))
  return {
    kinds: builtInKinds,
    apiServices: { all: () => remotes, remotes: () => remotes, remoteAt: () => undefined, onChange: () => () => {} },
    extensions: {
      versionOf: () => ({ freshness: 'Current', resources: [] }) as const,
      descriptionHash: () => undefined,
      description: ({ spec }: APIService) => described.get(spec.group ?? ''),
    },
  }
}

test('the whole document has what extension servers describe, the most important first', async (t) => {
  const wholeWith = async (needs: DiscoveryNeeds, accept?: string) => {
    const request = { path: '/openapi/v2', query: new URLSearchParams(), accept, ifNoneMatch: undefined }
    const answer = await openApiAnswer(request, needs, '0.1.0')
    if (answer?.kind !== 'document') throw new Error('no document')
    return answer
  }
  const needs = await withServers({
    'a.example': { text: 'a', priority: 10 },
    'b.example': { text: 'b', priority: 20 },
  })
  const { bytes, etag } = await wholeWith(needs)
  const { paths, definitions } = JSON.parse(bytes.toString())
  t.ok(paths['/apis/a.example/v1/things'])
  t.ok(paths['/apis/b.example/v1/things'])
  t.ok(paths['/api/v1/nodes'])
  t.equal(definitions['com.example.Shared'].description, 'b')
  t.equal(definitions['com.example.Shared_v2'].description, 'a')
  t.equal((await wholeWith(needs)).etag, etag)
  const protobuf = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
  t.ok((await wholeWith(needs, protobuf)).bytes.includes('/apis/a.example/v1/things'))
  const changed = await withServers({
    'a.example': { text: 'c', priority: 10 },
    'b.example': { text: 'b', priority: 20 },
  })
  t.not((await wholeWith(changed)).etag, etag)
  t.notOk((await wholeWith({ kinds: builtInKinds })).bytes.includes('a.example'))
})

const path = '/openapi/v3/apis/policy/v1'

async function answered(query = '', ifNoneMatch?: string): Promise<ApiResponse & { readonly kind: 'document' }> {
  const request = { path, query: new URLSearchParams(query), accept: 'application/json', ifNoneMatch }
  const answer = await openApiAnswer(request, { kinds: builtInKinds }, '0.1.0')
  if (answer?.kind !== 'document') throw new Error('no document')
  return answer
}

test('a client that has the document is not sent it again', async (t) => {
  const { etag, code } = await answered()
  t.equal(code, 200)
  t.equal((await answered('', etag)).code, 304)
  t.equal((await answered('', `"other", W/${etag}`)).code, 304)
  t.equal((await answered('', '"other"')).code, 200)
})

test('a document is kept for ever only under its own hash', async (t) => {
  const { etag, isImmutable } = await answered()
  t.notOk(isImmutable)
  t.ok((await answered(`hash=${etag.slice(1, -1)}`)).isImmutable)
  t.notOk((await answered('hash=0')).isImmutable)
})

test('a client that takes gzip is sent the document as it is kept', async (t) => {
  const answerTo = async (acceptEncoding: string | undefined) => {
    const request = {
      path,
      query: new URLSearchParams(),
      accept: 'application/json',
      acceptEncoding,
      ifNoneMatch: undefined,
    }
    const answer = await openApiAnswer(request, { kinds: builtInKinds }, '0.1.0')
    if (answer?.kind !== 'document') throw new Error('no document')
    return answer
  }
  const plain = await answerTo(undefined)
  t.match(JSON.parse(plain.bytes.toString()), { openapi: '3.0.0' })
  const packed = await answerTo('gzip')
  t.equal(packed.encoding, 'gzip')
  t.equal(packed.etag, plain.etag)
  t.same(gunzipSync(packed.bytes), plain.bytes)
  for (const [accepted, encoding] of [
    ['deflate, gzip;q=0.5', 'gzip'],
    ['GZIP', 'gzip'],
    ['gzip;q=0', undefined],
    ['gzip; q=0.000', undefined],
    ['identity', undefined],
    ['x-gzip-like', undefined],
  ] as const) {
    t.equal((await answerTo(accepted)).encoding, encoding, accepted)
  }
})

test('the whole document is JSON for a client that states nothing, and protobuf where that is named first', async (t) => {
  const answerTo = async (accept: string | undefined, ifNoneMatch?: string) => {
    const request = { path: '/openapi/v2', query: new URLSearchParams(), accept, ifNoneMatch }
    const answer = await openApiAnswer(request, { kinds: builtInKinds }, '0.1.0')
    if (answer?.kind !== 'document') throw new Error('no document')
    return answer
  }
  t.equal((await answerTo(undefined)).contentType, 'application/json')
  t.equal((await answerTo('*/*')).contentType, 'application/json')
  const protobuf = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
  const { contentType, bytes, etag } = await answerTo(protobuf)
  t.equal(contentType, 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf')
  t.ok(bytes.length > 10_000)
  t.equal((await answerTo(protobuf, etag)).code, 304)
})
