import { test } from 'tap'
import { type Readiness, shutdownReadiness } from './readiness.ts'

const ready: Readiness = {
  held: { delayMs: 30_000, how: 'descriptor' },
  trouble: undefined,
  shares: [{ priority: 0, graceMs: 20_000 }],
  ...{ denied: undefined, others: [], scheduled: undefined },
}
const shown = (more: Partial<Readiness>) => {
  const { status, reason, message } = shutdownReadiness({ ...ready, ...more })
  return [status, reason, message]
}
const waits = 'logind waits up to 30 s for the agent; pods have 20 s from priority 0'

test('a machine whose lock is held stops its pods in order', async (t) => {
  t.same(shutdownReadiness(ready), {
    ...{ type: 'GracefulShutdownReady', status: 'True', reason: 'DelayLockHeld', message: waits },
  })
  const shares = [...ready.shares, { priority: 2_000_000_000, graceMs: 1_250 }]
  t.same(shown({ shares })[2], `${waits}, 1.3 s from priority 2000000000`)
  t.same(shown({ held: { delayMs: 30_000, how: 'process' } })[2], `${waits}; the lock is held by a child process`)
})

test('a machine without the lock does not, and the reason is shown', async (t) => {
  const text = 'pods would not be stopped in order'
  t.same(shown({ held: undefined, trouble: 'logind does not answer' }), [
    ...['False', 'DelayLockNotHeld', `${text}: logind does not answer`],
  ])
  t.same(shown({ held: undefined })[2], `${text}: the lock is not taken yet`)
})

test('what else decides about a shutdown is shown in order', async (t) => {
  const denied = { wantedMs: 60_000, because: '/etc/systemd/logind.conf grants less' }
  t.same(shown({ denied }), [
    ...['True', 'DelayShortened', `${waits}; 60 s were configured, and /etc/systemd/logind.conf grants less`],
  ])
  t.same(shown({ denied: { ...denied, because: undefined } })[2], `${waits}; 60 s were configured, and not granted`)
  const scheduled = { action: 'reboot', atWallMs: Date.parse('2026-01-02T03:04:05Z') }
  const others = ['one', 'two'].map((who) => ({ who, why: 'Because', mode: 'block' }))
  t.same(
    shown({ denied, others, scheduled, held: { delayMs: 30_000, how: 'process' } })[2]
      ?.split('; ')
      .slice(3),
    [
      'the lock is held by a child process',
      'a reboot is scheduled for 2026-01-02T03:04:05Z',
      'locks are also held by one (block: Because), two (block: Because)',
    ],
  )
})
