import { test } from 'tap'
import { frozenCopy } from './frozen-copy.ts'
import { sharedParts } from './shared-parts.ts'

const fieldsOf = (name: string) => ({ 'f:data': { '.': {}, [`f:${name}`]: {} } })

test('equal parts are one object while they are kept', async (t) => {
  const share = sharedParts({ parts: 4, longest: 100 })
  let copies = 0
  const shared = (part: object) =>
    share(part, (given) => {
      copies += 1
      return Object.freeze({ ...given })
    })
  const first = shared(fieldsOf('a'))
  t.same(first, fieldsOf('a'))
  t.equal(shared(fieldsOf('a')), first)
  t.equal(shared(first), first)
  t.equal(copies, 1)
  t.not(shared(fieldsOf('b')), first)
  for (const name of ['c', 'd']) shared(fieldsOf(name))
  t.equal(shared(fieldsOf('a')), first, 'found in the older generation, it moves to the younger')
  for (const name of ['e', 'f', 'g', 'h', 'i']) shared(fieldsOf(name))
  t.not(shared(fieldsOf('a')), first, 'what is not used is dropped')
  const long = fieldsOf('x'.repeat(100))
  t.not(shared(long), shared(long), 'a long part is not looked for')
})

test('a key that unequal parts have gives each of them its own, and no key none', async (t) => {
  const share = sharedParts({ parts: 4, longest: 100 }, (part) => ('name' in part ? String(part.name) : undefined))
  const shared = (part: object) => share(part, (given) => Object.freeze({ ...given }))
  const first = shared({ name: 'a', size: 1 })
  t.equal(shared({ name: 'a', size: 1 }), first)
  const later = shared({ name: 'a', size: 2 })
  t.same(later, { name: 'a', size: 2 })
  t.equal(shared({ name: 'a', size: 2 }), later)
  t.not(shared({ size: 1 }), shared({ size: 1 }))
  const long = { name: 'b', more: 'x'.repeat(100) }
  t.not(shared(long), shared(long), 'a long part is not kept, however short its key')
})

test('objects of the store share the fields of their managers, Secrets do not', async (t) => {
  const object = (kind: string, name: string) => ({
    kind,
    metadata: { name, managedFields: [{ manager: 'x', fieldsV1: { 'f:data': { 'f:shared-or-not': {} } } }] },
  })
  const fieldsIn = ({ metadata }: ReturnType<typeof object>) => metadata.managedFields[0]?.fieldsV1
  const [one, other] = [frozenCopy(object('ConfigMap', 'a')), frozenCopy(object('ConfigMap', 'b'))]
  t.equal(fieldsIn(one), fieldsIn(other))
  t.ok(Object.isFrozen(fieldsIn(one)))
  t.same(fieldsIn(one), { 'f:data': { 'f:shared-or-not': {} } })
  const [secret, another] = [frozenCopy(object('Secret', 'a')), frozenCopy(object('Secret', 'b'))]
  t.not(fieldsIn(secret), fieldsIn(another))
  t.equal(frozenCopy({ kind: 'ConfigMap', fieldsV1: 7 }).fieldsV1, 7)
})

test('pods of one template share their containers, and nodes their images, whatever else differs', async (t) => {
  const pod = (name: string, image = 'web:1') =>
    frozenCopy({
      kind: 'Pod',
      metadata: { name },
      spec: { containers: [{ name: 'main', image, env: [{ name: 'A', value: undefined }] }, null, 'odd'] },
    })
  const [one, other, later] = [pod('a'), pod('b'), pod('c', 'web:2')]
  t.equal(one.spec.containers[0], other.spec.containers[0])
  t.not(one.spec.containers[0], later.spec.containers[0])
  t.same(later.spec.containers, [{ name: 'main', image: 'web:2', env: [{ name: 'A' }] }, null, 'odd'])
  t.ok(Object.isFrozen(one.spec.containers))
  const node = (more: readonly string[]) =>
    frozenCopy({
      images: [{ names: ['web:1'], sizeBytes: 5 }, ...more.map((name) => ({ names: [name], sizeBytes: 5 }))],
    })
  const [first, second] = [node(['a']), node(['b'])]
  t.equal(first.images[0], second.images[0])
  t.same(second.images, [
    { names: ['web:1'], sizeBytes: 5 },
    { names: ['b'], sizeBytes: 5 },
  ])
  t.ok(Object.isFrozen(first.images[0]) && Object.isFrozen(first.images[0]?.names))
  for (const odd of [{}, { names: [] }, { names: [7] }, { names: 'a' }]) {
    t.same(frozenCopy({ images: [odd, null] }), { images: [odd, null] })
  }
  t.same(frozenCopy({ kind: 'ConfigMap', containers: 'text', images: { a: 'b' } }), {
    kind: 'ConfigMap',
    containers: 'text',
    images: { a: 'b' },
  })
})
