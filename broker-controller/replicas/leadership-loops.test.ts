import { type Test, test } from 'tap'
import { aborted } from '../../daemon/aborted.ts'
import { runLoops } from '../../daemon/run.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { ensureNamespaces } from '../assembly/bootstrap-objects.ts'
import { LeadershipLostError } from '../store/election/election.ts'
import { memoryStore } from '../store/memory-store.ts'
import { leadershipLoops } from './leadership-loops.ts'

async function world(t: Test, keep: (signal: AbortSignal) => Promise<void> = aborted) {
  const clock = fakeClock()
  const log = quietLog(t)
  const store = memoryStore({ clock })
  await ensureNamespaces(store)
  const state = { isLeading: true }
  const pauses: boolean[] = []
  const election = {
    campaign: async () => undefined,
    keep,
    isLeading: () => state.isLeading,
    leader: () => undefined,
    resign: async () => undefined,
  }
  const loops = leadershipLoops({
    replica: { election, isLeading: () => state.isLeading },
    broker: { pause: (isPaused) => void pauses.push(isPaused) },
    term: { sinceMs: Date.parse('2026-01-01T00:00:00Z'), transitions: 4 },
    ...{ store, clock, log },
  })
  const stop = new AbortController()
  const running = runLoops(loops, stop.signal, log)
  const end = async () => {
    stop.abort()
    await running
  }
  const lease = async () => (await store.get('leases', { namespace: 'kube-system', name: 'bramble-controller' }))?.spec
  return { clock, log, state, pauses, lease, end, running }
}

test('the lease of the leader is shown, and renewed while it leads', async (t) => {
  const { clock, state, lease, end } = await world(t)
  await clock.settle()
  t.match(await lease(), {
    holderIdentity: /_\d+$/,
    leaseDurationSeconds: 15,
    acquireTime: '2026-01-01T00:00:00.000000Z',
    renewTime: '2026-01-01T00:00:00.000000Z',
    leaseTransitions: 4,
  })
  await clock.advance(4_000)
  t.equal((await lease())?.renewTime, '2026-01-01T00:00:04.000000Z')
  state.isLeading = false
  await clock.advance(10_000)
  t.equal((await lease())?.renewTime, '2026-01-01T00:00:04.000000Z')
  await end()
})

test('while the lease is not renewed no node is connected', async (t) => {
  const { clock, log, state, pauses, end } = await world(t)
  await clock.advance(1_000)
  t.same(pauses, [])
  state.isLeading = false
  await clock.advance(1_000)
  t.same(pauses, [true])
  t.match(log.messages('warn'), [/MQTT connections are closed/])
  state.isLeading = true
  await clock.advance(1_000)
  t.same(pauses, [true, false])
  await end()
})

test('a leader that has lost its lease ends', async (t) => {
  const { running } = await world(t, async () => {
    throw new LeadershipLostError('Another controller leads')
  })
  await t.rejects(running, { message: 'Loop leader-election-renewal failed', cause: LeadershipLostError })
})
