import { test } from 'tap'
import { type RebootFacts, rebootDecision } from './reboot-decision.ts'

const requestedAt = '2026-01-02T03:04:05Z'
const atMs = Date.parse(requestedAt)

const facts = (over: Partial<RebootFacts> = {}): RebootFacts => ({
  request: { requestedAt, bootID: 'boot-1' },
  bootID: 'boot-1',
  isEnabled: true,
  isLeaving: false,
  bootedAtMs: atMs - 3600_000,
  nowMs: atMs + 1_000,
  ...over,
})

test('a request for the present boot is carried out', async (t) => {
  t.same(rebootDecision(facts()), { decision: 'reboot' })
  t.same(rebootDecision(facts({ request: undefined })), { decision: 'none' })
})

test('after the reboot the same request is never carried out again, whatever the clock shows', async (t) => {
  for (const nowMs of [0, atMs - 86_400_000, atMs - 1, atMs, atMs + 1_000, atMs + 86_400_000]) {
    t.same(rebootDecision(facts({ bootID: 'boot-2', nowMs })), { decision: 'none' }, new Date(nowMs).toISOString())
  }
})

test('a machine that keeps its boot ID over a restart does not restart twice, and gives the reason', async (t) => {
  t.same(rebootDecision(facts({ bootedAtMs: atMs + 20_000, nowMs: atMs + 30_000 })), {
    decision: 'refuse',
    because: 'this machine has started since (2026-01-02T03:04:25Z)',
  })
})

test('without a boot ID no request is carried out', async (t) => {
  t.same(rebootDecision(facts({ bootID: '', request: { requestedAt, bootID: '' } })), { decision: 'none' })
})

test('while the machine shuts down a request adds nothing', async (t) => {
  t.same(rebootDecision(facts({ isLeaving: true })), { decision: 'none' })
})

test('a request is refused where it is switched off, too old, or from the future', async (t) => {
  t.match(rebootDecision(facts({ isEnabled: false })), { decision: 'refuse', because: /enableRemoteReboot/ })
  t.match(rebootDecision(facts({ nowMs: atMs + 301_000 })), { decision: 'refuse', because: /5 minutes old/ })
  t.match(rebootDecision(facts({ nowMs: atMs - 301_000, bootedAtMs: atMs - 999_000 })), {
    decision: 'refuse',
    because: /future/,
  })
})
