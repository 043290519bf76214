import { test } from 'tap'
import { memoryStore } from '../../broker-controller/store/memory-store.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { openDashboard } from './dashboard.ts'

const facts = { user: 'jane', address: '192.0.2.1', userAgent: 'browser' }
const proof = { kind: 'identity', identity: { user: 'jane', groups: [] }, sinceMs: 0 } as const

test('a session without requests ends with its time, and soon after its user is revoked', async (t) => {
  const clock = fakeClock()
  const stopping = new AbortController()
  let isRevoked = false
  const dashboard = openDashboard({
    store: memoryStore({ clock }),
    clock,
    log: quietLog(t),
    access: {
      decide: async () => ({ allowed: false, reason: '' }),
      rulesOf: () => [],
      rulesOfRole: () => undefined,
      revision: () => 0,
    },
    revocations: { because: () => (isRevoked ? 'revoked' : undefined) },
    files: { answer: async () => undefined },
    fleet: { stream: async function* () {}, history: () => undefined, run: async () => undefined },
    authority: () => ({ trusted: 'PEM', caHash: 'sha256:00', server: undefined }),
    version: '0.1.0',
  })
  const running = dashboard.run(stopping.signal)
  const opened = () => dashboard.sessions.find(dashboard.sessions.open(proof, facts))?.ended

  const idle = opened()
  await clock.advance(60_000)
  t.equal(idle?.aborted, false)
  await clock.advance(2 * 3600_000)
  t.equal(idle?.aborted, true, 'a shell that it opened ends')

  const revoked = opened()
  isRevoked = true
  await clock.advance(60_000)
  t.equal(revoked?.aborted, true)
  stopping.abort()
  await running
})
