import { gunzipSync } from 'node:zlib'
import { test } from 'tap'
import { builtInKinds } from '../../assembly/control-plane.ts'
import type { ApiResponse } from '../wire/answers.ts'
import { openApiAnswer } from './openapi-answers.ts'

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
