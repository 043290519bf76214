import { test } from 'tap'
import { decodeDesired, decodeReceivedDesired } from './desired.ts'
import { aPod } from './testing/builders.ts'

const web = aPod({ name: 'web' })
const later = { ...aPod({ name: 'later' }), spec: { containers: 'of another kind' } }
const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', namespace: 'default', uid: 'uid-of-c' } }
const desired = (more: object) => ({ epoch: 'one', version: 1, pods: [web], ...more })
const value = (input: unknown) => {
  const decoded = decodeDesired(input)
  return decoded.ok ? decoded.value : undefined
}

test('an object that is not understood takes no other with it', async (t) => {
  t.same(value(desired({})), desired({}), 'a message that decodes fully reports no problem')
  t.same(value(desired({ pods: [later, web] })), {
    ...desired({}),
    misread: [
      {
        kind: 'Pod',
        namespace: 'default',
        name: 'later',
        uid: 'uid-of-later',
        why: 'spec.containers: Invalid value: "of another kind": must be a list',
      },
    ],
  })
  const secret = { ...config, kind: 'Secret', data: 7 }
  const misread = value(desired({ configMaps: [config, { ...config, data: [] }], secrets: [secret] }))
  t.match(misread?.misread?.at(-1), { why: 'data' }, 'no value of a secret is reported')
  t.match(misread, { pods: [{}], configMaps: [{}], secrets: [], misread: [{ kind: 'ConfigMap' }, { kind: 'Secret' }] })
  t.same(value(JSON.parse(JSON.stringify(misread))), misread, 'what was not understood can be written down')
})

test('an object without an identity, and any other error, rejects the whole message', async (t) => {
  for (const more of [
    { pods: [web, null] },
    { pods: [web, { ...later, metadata: { name: 'later' } }] },
    { pods: [web, { spec: {} }] },
    { pods: 3 },
    { version: 'one', pods: [later] },
    { configMaps: {} },
  ]) {
    t.equal(value(desired(more)), undefined, JSON.stringify(more).slice(0, 80))
  }
  for (const input of [undefined, null, 'text', []]) t.equal(value(input), undefined)
})

test('a pod that is to go need not be understood', async (t) => {
  const metadata = { ...later.metadata, deletionTimestamp: '2026-01-02T00:00:00Z' }
  const message = value(desired({ pods: [{ ...later, metadata }] }))
  t.match(message, { pods: [{ metadata: { name: 'later', deletionTimestamp: String }, spec: { containers: [] } }] })
  t.equal(message?.misread, undefined)
})

const names = { pods: ['p'], configMaps: ['c'], secrets: [] }
const references = (more: object = {}) => ({ epoch: 'one', version: 1, names, contents: {}, ...more })

test('an agent from before contents by name ignores a message that has them, and keeps its pods', async (t) => {
  t.equal(decodeDesired(references({ contents: { p: web, c: config } })).ok, false)
})

test('contents are decoded by the list that has their name, and only those that are in a list', async (t) => {
  const decoded = decodeReceivedDesired(references({ contents: { p: web, c: config, other: { any: 'thing' } } }))
  if (!decoded.ok) return t.fail(JSON.stringify(decoded.problems))
  const { contents, ...message } = decoded.value
  t.same(message, { epoch: 'one', version: 1, names, pods: [] })
  t.same(
    [...(contents ?? [])].map(([name, { kind }]) => [name, kind]),
    [
      ['p', 'Pod'],
      ['c', 'ConfigMap'],
    ],
  )
  t.same(decodeReceivedDesired(desired({})), decodeDesired(desired({})), 'the other form is decoded as ever')
})

test('a content that is not understood takes no other with it, unless it has no identity', async (t) => {
  const decoded = decodeReceivedDesired(references({ contents: { p: later, c: config } }))
  t.match(decoded.ok && decoded.value.contents?.get('p'), {
    kind: 'misread',
    misread: { kind: 'Pod', name: 'later', content: 'p' },
  })
  for (const contents of [{ p: 7 }, { p: { spec: {} } }, [], 'text']) {
    t.equal(decodeReceivedDesired(references({ contents })).ok, false, JSON.stringify(contents))
  }
  t.equal(decodeReceivedDesired({ ...references(), names: 3 }).ok, false)
})

test('names stay with their objects when one of these is not understood, and do not count without an object', async (t) => {
  const both = { pods: ['p-later', 'p-web'] }
  const misread = value(desired({ pods: [later, web], names: both }))
  t.match(misread, { pods: [web], names: { pods: ['p-web'] }, misread: [{ name: 'later', content: 'p-later' }] })
  t.same(value(JSON.parse(JSON.stringify(misread))), misread)
  t.equal(value(desired({ names: both }))?.names, undefined, 'more names than objects')
  t.same(value(desired({ pods: [web, web], names: { pods: ['p-web'] } }))?.names, { pods: ['p-web'] })
})
