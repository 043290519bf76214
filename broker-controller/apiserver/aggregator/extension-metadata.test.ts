import { test } from 'tap'
import { extensionEventIn, extensionListIn, extensionObjectIn } from './extension-metadata.ts'

const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }
const anObject = (metadata: object = {}) => ({ metadata: { name: 'a', uid: '1', ...metadata } })

test('an object has its known fields only', async (t) => {
  t.same(extensionObjectIn(anObject()), { metadata: { name: 'a', uid: '1', resourceVersion: '' } })
  const full = {
    ...{ name: 'a', uid: '1', namespace: 'n', resourceVersion: '7', deletionTimestamp: '2026-11-30T00:00:00Z' },
    ...{ finalizers: ['example.com/f'], ownerReferences: [owner] },
  }
  t.same(extensionObjectIn({ metadata: { ...full, labels: { a: 'b' } }, spec: { secret: 1 } }), { metadata: full })
  t.same(
    extensionObjectIn(anObject({ deletionTimestamp: 'x'.repeat(300) }))?.metadata.deletionTimestamp?.length,
    253,
    'a time without end is clipped',
  )
})

test('an object that those of Kubernetes cannot be like is not read', async (t) => {
  const many = <T>(count: number, one: T) => Array.from({ length: count }, () => one)
  const cases: readonly [object, boolean][] = [
    [{ name: '' }, false],
    [{ name: '.' }, false],
    [{ name: '..' }, false],
    [{ name: 'a/b' }, false],
    [{ name: 'a%2fb' }, false],
    [{ name: 'a b' }, false],
    [{ name: 'a\u0000' }, false],
    [{ name: 'x'.repeat(253) }, true],
    [{ name: 'x'.repeat(254) }, false],
    [{ namespace: '' }, true],
    [{ namespace: '..' }, false],
    [{ uid: '' }, false],
    [{ uid: 'x'.repeat(128) }, true],
    [{ uid: 'x'.repeat(129) }, false],
    [{ resourceVersion: 'x'.repeat(128) }, true],
    [{ resourceVersion: 'x'.repeat(129) }, false],
    [{ ownerReferences: many(64, owner) }, true],
    [{ ownerReferences: many(65, owner) }, false],
    [{ ownerReferences: [{ ...owner, uid: '' }] }, false],
    [{ ownerReferences: [{ ...owner, kind: '' }] }, false],
    [{ ownerReferences: [{ ...owner, name: 'x'.repeat(254) }] }, false],
    [{ finalizers: many(64, 'f') }, true],
    [{ finalizers: many(65, 'f') }, false],
    [{ finalizers: [''] }, false],
    [{ finalizers: ['x'.repeat(254)] }, false],
  ]
  for (const [metadata, isRead] of cases) {
    t.equal(extensionObjectIn(anObject(metadata)) !== undefined, isRead, JSON.stringify(metadata).slice(0, 60))
  }
  for (const document of [undefined, null, 'text', [], {}, { metadata: { name: 'a' } }]) {
    t.equal(extensionObjectIn(document), undefined, JSON.stringify(document))
  }
})

test('a list is read in parts', async (t) => {
  t.same(extensionListIn({ items: [1, 2], metadata: { resourceVersion: '5', continue: 'next' } }), {
    ...{ items: [1, 2], resourceVersion: '5', next: 'next' },
  })
  for (const items of [undefined, null]) {
    t.same(extensionListIn({ items }), { items: [], resourceVersion: '', next: '' }, 'as Go writes an empty list')
  }
  t.equal(extensionListIn({ metadata: { continue: 'x'.repeat(8_192) } }).next.length, 8_192)
  for (const document of [
    ...[undefined, [], 'text', { items: {} }, { metadata: { resourceVersion: 5 } }, { metadata: { continue: 5 } }],
    ...[{ metadata: { resourceVersion: 'x'.repeat(129) } }, { metadata: { continue: 'x'.repeat(8_193) } }],
  ]) {
    t.throws(() => extensionListIn(document), /its list cannot be read/, JSON.stringify(document)?.slice(0, 60))
  }
})

test('an event of a watch', async (t) => {
  const object = { metadata: { name: 'a', uid: '1', resourceVersion: '' } }
  const bookmark = (resourceVersion: unknown) => ({ type: 'BOOKMARK', object: { metadata: { resourceVersion } } })
  for (const [document, event] of [
    [
      { type: 'ADDED', object: anObject() },
      { type: 'ADDED', object },
    ],
    [
      { type: 'MODIFIED', object: anObject() },
      { type: 'MODIFIED', object },
    ],
    [
      { type: 'DELETED', object: anObject() },
      { type: 'DELETED', object },
    ],
    [{ type: 'DELETED', object: anObject({ uid: '' }) }, undefined],
    [{ type: 'ADDED' }, undefined],
    [bookmark('9'), { type: 'BOOKMARK', resourceVersion: '9' }],
    [bookmark(9), undefined],
    [bookmark(''), undefined],
    [bookmark('x'.repeat(129)), undefined],
    [{ type: 'BOOKMARK', object: {} }, undefined],
    [{ type: 'BOOKMARK' }, undefined],
    [{ type: 'ERROR', object: { code: 410 } }, 'expired'],
    [{ type: 'ERROR', object: { code: 500 } }, undefined],
    [{ type: 'ERROR' }, undefined],
    [{ type: 'OTHER', object: anObject() }, undefined],
    ['ADDED', undefined],
  ] as const) {
    t.same(extensionEventIn(document), event, JSON.stringify(document).slice(0, 60))
  }
})
