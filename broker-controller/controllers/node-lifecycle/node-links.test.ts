import { test } from 'tap'
import { type NodeOnLink, nodeLinks } from './node-links.ts'

const settings = {
  linkSuspicionPatienceMs: 900_000,
  linkSuspicionWindowMs: 20_000,
  linkSuspicionShare: 0.5,
  linkSuspicionNodes: 5,
  nodeMonitorGracePeriodMs: 50_000,
}
const on = (link: string | undefined, lostMs?: number, isOutOfService = false): NodeOnLink => ({
  ...{ link, lostMs, isOutOfService },
})

/** Four nodes on the link `attic`, of which the first two were lost at 0 and 1 s. */
function halfLost() {
  const links = nodeLinks(settings)
  for (const [name, lostMs] of [
    ['a', 0],
    ['b', 1_000],
    ['c', undefined],
    ['d', undefined],
  ] as const) {
    links.put(name, on('attic', lostMs))
  }
  return links
}

test('nodes that were lost with half of their link are named once, and keep their pods for a time', async (t) => {
  const links = halfLost()
  t.equal(links.suspicionOf('a', 1_000), undefined, 'it is not judged yet')
  t.same(links.judge(1_000), ['a', 'b'])
  t.same(links.judge(2_000), [], 'nothing changed')
  t.match(links.suspicionOf('a', 899_999), { link: 'attic', total: 4, untilMs: 900_000 })
  t.equal(links.suspicionOf('a', 900_000), undefined)
  t.equal(links.suspicionOf('c', 1_000), undefined, 'it is not lost')
  t.equal(links.suspicionOf('unknown', 1_000), undefined)
})

test('a change without a difference has no link judged', async (t) => {
  const links = halfLost()
  links.judge(1_000)
  links.put('a', on('attic', 0))
  t.same(links.judge(60_000), [])
})

test('all members are named when one of them is back, and it alone may lose its pods again', async (t) => {
  const links = halfLost()
  links.judge(1_000)
  links.put('a', on('attic'))
  t.same(links.judge(90_000), ['a', 'b'])
  t.equal(links.suspicionOf('b', 90_000)?.untilMs, 140_000)
  links.put('a', on('attic', 100_000))
  links.judge(100_000)
  t.equal(links.suspicionOf('a', 100_000), undefined, 'lost at another time')
})

test('one that is out of service ends the suspicion of all', async (t) => {
  const links = halfLost()
  links.judge(1_000)
  links.put('b', on('attic', 1_000, true))
  t.same(links.judge(60_000), ['a', 'b'])
  t.equal(links.suspicionOf('a', 60_000), undefined)
  links.put('b', on('attic', 1_000))
  links.judge(70_000)
  t.equal(links.suspicionOf('a', 70_000), undefined, 'it does not begin again')
})

test('a node that moves to another link counts there, and one that reports none on no link', async (t) => {
  const links = halfLost()
  links.put('b', on('cellar', 1_000))
  t.same(links.judge(1_000), [], 'one of three, and one of one')
  links.put('d', on('cellar', 1_500))
  t.same(links.judge(2_000), ['b', 'd'])
  links.put('d', on(undefined, 1_500))
  t.equal(links.suspicionOf('d', 2_000), undefined)
})

test('a node that was removed makes the link smaller, and the last one takes the suspicion with it', async (t) => {
  const links = nodeLinks(settings)
  for (const name of ['a', 'b', 'c', 'd', 'e']) links.put(name, on('attic', name < 'c' ? 0 : undefined))
  t.same(links.judge(0), [], 'two of five')
  links.delete('e')
  t.same(links.judge(1), ['a', 'b'], 'two of four')
  for (const name of ['a', 'b', 'c', 'd', 'd']) links.delete(name)
  t.same(links.judge(2), [])
  links.put('a', on('attic', 0))
  t.same([links.judge(3), links.suspicionOf('a', 3)], [[], undefined])
})
