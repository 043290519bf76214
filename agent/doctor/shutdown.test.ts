import { test } from 'tap'
import { verdicts } from '../testing/verdicts.ts'
import { aptSettings } from './apt-settings.ts'
import { agentUnit, automaticRestart, delayDropIn, type ShutdownReading, shutdownDelay } from './shutdown.ts'

const unattended = '/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf'
const shutdown: ShutdownReading = { hasLogind: true, assignments: [], grantedSeconds: undefined, wantedSeconds: 30 }

test('the time for pods at shutdown: the file that sets it, and a drop-in of Bramble that overrides it', async (t) => {
  t.match(shutdownDelay(shutdown), {
    verdict: 'warning',
    found: /pods have 5 s to end \(logind's default/,
    fix: {
      needsRestart: false,
      steps: [{ path: delayDropIn, content: /^#.*\n\[Login\]\nInhibitDelayMaxSec=30\n$/s }, { kind: 'reload-logind' }],
    },
  })
  const assignments = [
    { file: '/etc/systemd/logind.conf.d/99-kubelet.conf', value: '60' },
    { file: unattended, value: '10s' },
  ]
  t.match(shutdownDelay({ ...shutdown, assignments }), {
    verdict: 'warning',
    found: /10 s.*unattended-upgrades-logind-maxdelay\.conf, which wins over .*99-kubelet\.conf \(60\)/,
    fix: {},
  })
  const ours = { file: delayDropIn, value: '30' }
  t.match(shutdownDelay({ ...shutdown, assignments: [...assignments, ours], grantedSeconds: 30 }), { verdict: 'ok' })
  t.match(shutdownDelay({ ...shutdown, assignments: [ours], grantedSeconds: 5 }), {
    verdict: 'warning',
    found: /has not yet read/,
    fix: { steps: [{ kind: 'reload-logind' }] },
  })
  const last = { file: '/etc/systemd/logind.conf.d/zzz.conf', value: '3' }
  t.match(shutdownDelay({ ...shutdown, assignments: [last] }), {
    verdict: 'warning',
    remedy: /zzz\.conf/,
    fix: undefined,
  })
  t.match(
    shutdownDelay({ ...shutdown, assignments: [{ ...ours, value: '10' }] }),
    { verdict: 'warning', fix: undefined },
    'what somebody wrote there stays',
  )
  t.match(
    shutdownDelay({ ...shutdown, assignments: [{ ...ours, value: 'soon' }] }),
    { found: /5 s/ },
    'nonsense does not count',
  )
  t.match(shutdownDelay({ ...shutdown, assignments: [{ ...ours, value: 'infinity' }] }), { verdict: 'ok' })
  const agents = { file: '/etc/systemd/logind.conf.d/zzz-bramble.conf', value: '10' }
  t.match(shutdownDelay({ ...shutdown, assignments: [ours, agents] }), { remedy: /^Restart the agent/, fix: undefined })
  t.match(shutdownDelay({ ...shutdown, wantedSeconds: 0 }), { verdict: 'ok' }, 'pods are not to be waited for')
  t.equal(shutdownDelay({ ...shutdown, hasLogind: false }).verdict, 'unknown')
})

test('restarts by unattended-upgrades', async (t) => {
  const of = (content: string) => automaticRestart(aptSettings([{ path: '/etc/apt/apt.conf.d/50u', content }]))
  t.equal(of('').verdict, 'ok')
  t.equal(of('Unattended-Upgrade::Automatic-Reboot "false";').verdict, 'ok')
  const on = 'Unattended-Upgrade::Automatic-Reboot "true";'
  t.match(of(on), { verdict: 'warning', found: /at once after an upgrade.*50u/, remedy: /Automatic-Reboot-Time/ })
  t.match(of(`${on} Unattended-Upgrade::Automatic-Reboot-Time "02:00";`), { found: /at 02:00/ })
  t.equal(of(`${on} APT::Periodic::Unattended-Upgrade "0";`).verdict, 'ok')
  t.equal(automaticRestart(undefined).verdict, 'unknown')
})

test("the agent's unit", async (t) => {
  const unit = { load: 'loaded', active: 'active', file: 'enabled', watchdogSeconds: 60 }
  const of = (changes: Partial<typeof unit>, hasJoined = true) =>
    verdicts(agentUnit({ ...unit, ...changes }, hasJoined, undefined))
  t.same(of({}), { 'agent-service': 'ok', 'agent-watchdog': 'ok' })
  t.same(of({ active: 'failed', watchdogSeconds: 0 }), { 'agent-service': 'problem' })
  t.same(of({ active: 'inactive' }, false), { 'agent-service': 'ok' })
  t.same(of({ file: 'disabled' }), { 'agent-service': 'problem', 'agent-watchdog': 'ok' })
  t.same(of({ watchdogSeconds: 0 }), { 'agent-service': 'ok', 'agent-watchdog': 'warning' })
  t.same(of({ load: 'masked' }), { 'agent-service': 'problem' })
  t.same(of({ load: 'not-found' }), { 'agent-service': 'warning' })
  t.match(agentUnit(undefined, true, 42), [{ verdict: 'warning', found: /process 42/ }])
  t.match(agentUnit(undefined, false, undefined), [{ verdict: 'unknown' }])
})
