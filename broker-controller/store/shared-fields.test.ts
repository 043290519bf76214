import { test } from 'tap'
import { frozenCopy } from './frozen-copy.ts'
import { sharedFields } from './shared-fields.ts'

const fieldsOf = (name: string) => ({ 'f:data': { '.': {}, [`f:${name}`]: {} } })

test('equal sets of fields are one object while they are kept', async (t) => {
  const share = sharedFields({ sets: 4, longest: 100 })
  const first = fieldsOf('a')
  t.equal(share(first), first)
  t.equal(share(fieldsOf('a')), first)
  t.equal(share(first), first)
  t.not(share(fieldsOf('b')), first)
  for (const name of ['c', 'd']) share(fieldsOf(name))
  t.equal(share(fieldsOf('a')), first, 'found in the older generation, it moves to the younger')
  for (const name of ['e', 'f', 'g', 'h', 'i']) share(fieldsOf(name))
  t.not(share(fieldsOf('a')), first, 'what is not used is dropped')
  const long = fieldsOf('x'.repeat(100))
  t.equal(share(long), long)
  t.not(share(fieldsOf('x'.repeat(100))), long, 'a long set is not looked for')
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
