import { test } from 'tap'
import { keySets } from './key-sets.ts'

test('keys are found by their group, each once, until they are deleted', async (t) => {
  const sets = keySets()
  sets.add('blue', 'a')
  sets.add('blue', 'b')
  sets.add('blue', 'a')
  sets.add('green', 'c')
  t.same([...sets.of('blue')], ['a', 'b'])
  sets.delete('blue', 'a')
  t.same([...sets.of('blue')], ['b'])
  t.same([...sets.of('green')], ['c'])
})

test('a group without keys is forgotten, and what was never added is deleted without effect', async (t) => {
  const sets = keySets()
  sets.delete('blue', 'a')
  sets.add('blue', 'a')
  sets.delete('blue', 'other')
  t.same([...sets.groups()], ['blue'])
  sets.delete('blue', 'a')
  t.same([...sets.groups()], [])
  t.same([...sets.of('blue')], [])
})
