import { test } from 'tap'
import { revisionHash, revisionName } from './revision-hash.ts'

test('the hash stands for the content, whatever the order of its fields', async (t) => {
  t.equal(revisionHash({ a: 1, b: { c: [1, 2], d: 'x' } }), revisionHash({ b: { d: 'x', c: [1, 2] }, a: 1 }))
  t.not(revisionHash({ a: [1, 2] }), revisionHash({ a: [2, 1] }))
  t.not(revisionHash({ a: 1 }), revisionHash({ a: 1 }, 1), 'a name that is taken is not tried again')
  t.not(revisionHash({ a: 1 }, 1), revisionHash({ a: 1 }, 2))
  for (const content of [{}, { a: 'ü' }, { spec: { template: {} } }]) {
    t.match(revisionHash(content), /^[bcdfghjklmnpqrstvwxz2456789]{1,10}$/)
  }
  t.equal(revisionHash({}), '5859f96865', 'it stays over versions of the program')
  t.equal(revisionHash({ b: 1, a: { d: 1, c: 2 } }), '65f47fb957')
})

test('a long name of an owner is cut', async (t) => {
  t.equal(revisionName('web', '6f7c'), 'web-6f7c')
  t.equal(revisionName('w'.repeat(253), '6f7c'), `${'w'.repeat(223)}-6f7c`)
})
