import { test } from 'tap'
import { type BatchState, nextBatch, noProblems } from './batches.ts'
import type { FleetProblem } from './problems.ts'

const settings = { delayMs: 60_000, groupWaitMs: 30_000, resolveDelayMs: 600_000, minIntervalMs: 60_000 }
const aProblem = (name: string): FleetProblem => ({ key: name, kind: 'NodeNotReady', namespace: '', name, text: name })

/** Runs passes every 5 s; `at` gives the problems of a time in seconds. Lines like `90 +a,b -c`. */
function sentOver(seconds: number, at: (second: number) => readonly string[]): readonly string[] {
  const lines: string[] = []
  let state: BatchState = noProblems
  for (let second = 0; second <= seconds; second += 5) {
    const problems = new Map(at(second).map((name): [string, FleetProblem] => [name, aProblem(name)]))
    const { state: after, batch } = nextBatch(state, problems, second * 1000, settings)
    state = after
    if (batch === undefined) continue
    const names = (sign: string, list: readonly FleetProblem[]) =>
      list.length === 0 ? '' : ` ${sign}${list.map(({ name }) => name)}`
    lines.push(`${second}${names('+', batch.firing)}${names('-', batch.resolved)}`)
  }
  return lines
}

test('a problem that lasts is sent once, after the delay and the time to collect others', async (t) => {
  t.same(
    sentOver(3600, () => ['a']),
    ['90 +a'],
  )
})

test('a problem that is over within the delay is not sent', async (t) => {
  t.same(
    sentOver(600, (second) => (second < 55 ? ['a'] : [])),
    [],
  )
})

test('problems that begin together are one message', async (t) => {
  t.same(
    sentOver(600, (second) => (second < 20 ? ['a'] : ['a', 'b', 'c'])),
    ['90 +a,b,c'],
  )
})

test('messages keep their distance, however many problems begin', async (t) => {
  const sent = sentOver(600, (second) => Array.from({ length: Math.floor(second / 10) }, (_, i) => `p${i}`))
  const seconds = sent.map((line) => Number(line.split(' ')[0]))
  t.ok(seconds.every((second, i) => i === 0 || second - (seconds[i - 1] ?? 0) >= 60))
})

test('a problem that is over is resolved once, when it stays away', async (t) => {
  t.same(
    sentOver(3600, (second) => (second < 200 ? ['a'] : [])),
    ['90 +a', '830 -a'],
  )
})

test('a problem that returns was not over: a pod that crashes again and again is one message', async (t) => {
  t.same(
    sentOver(7200, (second) => (second < 200 || second % 400 < 300 ? ['a'] : [])),
    ['90 +a'],
  )
})

test('what is resolved and returns later is a new problem', async (t) => {
  t.same(
    sentOver(3000, (second) => (second < 200 || second >= 2000 ? ['a'] : [])),
    ['90 +a', '830 -a', '2090 +a'],
  )
})

test('nothing is kept of problems that are over', async (t) => {
  let state: BatchState = noProblems
  for (let i = 0; i < 1000; i++) {
    state = nextBatch(state, new Map([[`p${i}`, aProblem(`p${i}`)]]), i * 1000, settings).state
  }
  t.equal(state.tracked.size, 1)
})
