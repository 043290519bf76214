import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { frequentRestarts, type RestartReading, startCounter } from './restarts.ts'

const calm: RestartReading = { agentStartsAgoMs: undefined, dockerStartsAgoMs: [], shortBoots: 0 }
const minutes = (...ago: readonly number[]) => ago.map((minute) => minute * 60_000)

test('five starts in twenty minutes are many, four are not, and old ones do not count', async (t) => {
  t.match(frequentRestarts(calm), { status: 'False' })
  t.match(frequentRestarts({ ...calm, agentStartsAgoMs: minutes(0, 1, 2, 3) }), { status: 'False' })
  t.match(frequentRestarts({ ...calm, agentStartsAgoMs: minutes(0, 1, 2, 3, 19) }), { reason: 'FrequentAgentRestarts' })
  t.match(frequentRestarts({ ...calm, agentStartsAgoMs: minutes(0, 1, 2, 3, 20) }), { status: 'False' })
  t.match(frequentRestarts({ ...calm, dockerStartsAgoMs: minutes(1, 2, 3, 4, 5) }), {
    reason: 'FrequentDockerRestarts',
  })
})

test('boots that do not last become a condition, whatever the clock shows', async (t) => {
  t.match(frequentRestarts({ ...calm, shortBoots: 2 }), { status: 'False' })
  t.match(frequentRestarts({ ...calm, shortBoots: 3 }), { status: 'True', reason: 'FrequentReboots' })
})

test('a start is counted once: by its process where that is known, else by its silence', async (t) => {
  const clock = fakeClock()
  let now: { pid: number | undefined; isSilent: boolean } = { pid: 7, isSilent: false }
  const counter = startCounter(() => now, clock)
  const seen = (pid: number | undefined, isSilent: boolean) => {
    now = { pid, isSilent }
    return counter.look().length
  }
  t.equal(seen(7, false), 0)
  t.equal(seen(undefined, true), 0, 'it is down')
  t.equal(seen(8, false), 1)
  t.equal(seen(9, false), 2, 'between two looks')
  await clock.advance(60_000)
  t.same(counter.look(), [60_000, 60_000])
  const other = startCounter(() => now, clock)
  now = { pid: undefined, isSilent: true }
  other.look()
  now = { pid: undefined, isSilent: false }
  t.equal(other.look().length, 1)
})
