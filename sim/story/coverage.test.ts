import { test } from 'tap'
import { healthyIsNotEvicted } from '../invariants/healthy-is-not-evicted.ts'
import { coverageCounter, coverageText, noCoverage, sumOfCoverage } from './coverage.ts'
import type { Fact } from './facts.ts'

const fault = (what: string, target: string): Fact => ({ kind: 'fault', number: 1, what, target, seconds: 9 })

test('faults of a kind and facts that meet a rule are counted, and those of several worlds added', (t) => {
  const world = (...facts: readonly Fact[]) => {
    const counter = coverageCounter([healthyIsNotEvicted, { name: 'all hold' }])
    for (const fact of facts) t.equal(counter.judge({ ...fact, atMs: 0 }), undefined)
    counter.met('the end')
    return counter.counted
  }
  const first = world(
    fault('the date is wrong by -60 s', 'date of node-1'),
    fault('the date is wrong by 5 s', 'date of node-2'),
    fault('packets are slow', 'network'),
  )
  const second = world({ kind: 'evicted', node: 'node-1', pod: 'web' }, fault('packets are slow', 'network'))
  t.same(coverageText(sumOfCoverage(noCoverage, first, second)), [
    'Faults that began:',
    '       2  date of a node: the date is wrong',
    '       2  network: packets are slow',
    'Facts that met a rule:',
    '       1  no healthy node is evicted from',
    '       2  the end',
    '       5  all hold',
  ])
  t.end()
})

test('a rule that nothing met is listed with 0', (t) => {
  t.same(
    coverageText(coverageCounter([healthyIsNotEvicted]).counted).at(-1),
    '       0  no healthy node is evicted from',
  )
  t.end()
})
