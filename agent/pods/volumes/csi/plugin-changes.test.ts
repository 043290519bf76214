import { test } from 'tap'
import { mostPlugins, pluginChanges } from './plugin-changes.ts'

const sockets = (...names: readonly string[]) => new Map(names.map((name) => [name, `id of ${name}`]))
const numbered = (first: number, count: number) =>
  sockets(...Array.from({ length: count }, (_, index) => `plugin-${String(first + index).padStart(4, '0')}`))

test('what has come, what has gone, and what was made again', async (t) => {
  for (const [what, known, present, gone, added] of [
    ['nothing', sockets(), sockets(), [], []],
    ['the first', sockets(), sockets('a', 'b'), [], ['a', 'b']],
    ['the same', sockets('a'), sockets('a'), [], []],
    ['one left', sockets('a', 'b'), sockets('b'), ['a'], []],
    ['one came beside another', sockets('a'), sockets('a', 'b'), [], ['b']],
    ['another socket at the same path', new Map([['a', 'old']]), sockets('a', 'b'), ['a'], ['a', 'b']],
  ] as const) {
    const changes = pluginChanges(known, present)
    t.same([changes.gone, changes.added.map(([name]) => name)], [gone, added], what)
  }
  t.same(pluginChanges(sockets(), sockets('a')).added, [['a', 'id of a']])
})

test('a folder full of sockets adds plugins up to the limit', async (t) => {
  t.equal(pluginChanges(sockets(), numbered(0, mostPlugins + 10)).added.length, mostPlugins)
  t.same(
    pluginChanges(numbered(0, mostPlugins - 1), numbered(0, mostPlugins + 10)).added.map(([name]) => name),
    ['plugin-0063'],
    'those that are known keep their places',
  )
  const full = pluginChanges(numbered(0, mostPlugins), numbered(0, mostPlugins + 10))
  t.same([full.gone, full.added], [[], []])
  const moved = pluginChanges(numbered(0, mostPlugins), numbered(1, mostPlugins + 10))
  t.same(
    [moved.gone, moved.added.map(([name]) => name)],
    [['plugin-0000'], ['plugin-0064']],
    'the place of one that is gone',
  )
})
