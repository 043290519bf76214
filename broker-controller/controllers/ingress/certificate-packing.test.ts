import { test } from 'tap'
import { type Packed, packCertificates } from './certificate-packing.ts'

const files = (text: string) =>
  new Map(text.split(' ').flatMap((name) => (name === '' ? [] : [[name, 'x'.repeat(4)] as const])))
const packed = (...secrets: readonly string[]): Packed => secrets.map(files)
const shown = (all: Packed) => all.map((some) => [...some.keys()].join(' '))

test('a certificate stays in its Secret, and a new one goes where there is room', async (t) => {
  const { withOld, withoutOld } = packCertificates(files('a b c'), packed('b', ''), 8)
  t.same(shown(withOld), ['b a', 'c'])
  t.same(shown(withoutOld), ['b a', 'c'])
})

test('one that nothing names any more is there until the new ones are', async (t) => {
  const { withOld, withoutOld } = packCertificates(files('b c'), packed('a b', ''), 8)
  t.same(shown(withOld), ['a b', 'c'])
  t.same(shown(withoutOld), ['b', 'c'])
})

test('where there is no room for both, the old ones go first', async (t) => {
  const { withOld, withoutOld } = packCertificates(files('c d'), packed('a b', 'c'), 8)
  t.same(shown(withOld), ['a b', 'c d'])
  t.same(shown(withoutOld), ['', 'c d'])
  const full = packCertificates(files('c d e'), packed('a b', 'c'), 8)
  t.same(shown(full.withOld), ['d e', 'c'])
  t.same(shown(full.withoutOld), ['d e', 'c'])
})
