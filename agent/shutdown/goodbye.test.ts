import { test } from 'tap'
import { type GoodbyeFacts, goodbyeFor } from './goodbye.ts'

const idle: GoodbyeFacts = { jobs: [], goingDown: undefined, isUpgrading: false, bootMs: 30_000 }
const down = (action: string | undefined, leftMs = 20_000) => ({ ...idle, goingDown: { action, leftMs } })
const job = (unit: string, type = 'start') => ({ ...idle, jobs: [{ unit, type }] })

test('a reboot is over after twice the boot that was measured, and what the pods take before', async (t) => {
  t.same(goodbyeFor(down('reboot')), { reason: 'reboot', expectedBackSeconds: 20 + 60 + 60 })
  t.same(goodbyeFor(down('kexec', 0)), { reason: 'reboot', expectedBackSeconds: 120 })
  t.same(goodbyeFor({ ...down('reboot', 0), bootMs: undefined }), { reason: 'reboot', expectedBackSeconds: 300 })
  t.same(goodbyeFor(job('reboot.target')), { reason: 'reboot', expectedBackSeconds: 120 })
})

test('a machine that is powered off has time to be moved to another place', async (t) => {
  t.same(goodbyeFor(down('poweroff', 0)), { reason: 'power-off', expectedBackSeconds: 600 })
  t.same(goodbyeFor(job('halt.target')), { reason: 'power-off', expectedBackSeconds: 600 })
})

test('without an action from logind, the job of systemd decides', async (t) => {
  t.same(goodbyeFor(down(undefined)), { reason: 'shutdown', expectedBackSeconds: 620 })
  const jobs = [
    { unit: 'bramble-agent.service', type: 'stop' },
    { unit: 'poweroff.target', type: 'start' },
  ]
  t.match(
    goodbyeFor({ ...down('reboot', 0), jobs }),
    { reason: 'power-off' },
    'what is done counts, not what was planned',
  )
})

test('an agent that is restarted, replaced or stopped gives that as the reason', async (t) => {
  t.same(goodbyeFor(job('bramble-agent.service', 'restart')), { reason: 'agent-restart', expectedBackSeconds: 60 })
  t.same(goodbyeFor({ ...job('bramble-agent.service', 'restart'), isUpgrading: true }), {
    reason: 'agent-upgrade',
    expectedBackSeconds: 180,
  })
  t.same(goodbyeFor(job('bramble-agent.service', 'stop')), { reason: 'agent-stopped' }, 'its end is unknown')
  t.same(goodbyeFor(idle), { reason: 'agent-stopped' })
  t.same(goodbyeFor(job('other.service', 'restart')), { reason: 'agent-stopped' })
  t.same(goodbyeFor(job('reboot.target', 'stop')), { reason: 'agent-stopped' }, 'a reboot that is cancelled')
})
