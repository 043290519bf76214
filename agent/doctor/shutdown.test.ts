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

test('the message names every file that is overridden, and no invalid value', async (t) => {
  const file = (name: string, value: string) => ({ file: `/etc/systemd/logind.conf.d/${name}.conf`, value })
  const found = (...assignments: readonly ReturnType<typeof file>[]) =>
    shutdownDelay({ ...shutdown, assignments }).found
  t.match(found(file('a', '60')), /end \(set by \/etc\/systemd\/logind\.conf\.d\/a\.conf\)$/)
  t.match(
    found(file('a', '10'), file('b', '20'), file('c', '60')),
    /c\.conf, which wins over \S*a\.conf \(10\) and \S*b\.conf \(20\)\)$/,
  )
  t.match(found(file('a', '60'), file('b', 'soon')), /set by \S*a\.conf\)$/)
})

test('logind has read its files when its delay is theirs, within a second', async (t) => {
  const assignments = [{ file: delayDropIn, value: '30' }]
  const of = (grantedSeconds: number) => shutdownDelay({ ...shutdown, assignments, grantedSeconds })
  t.same(
    [of(30), of(29.1), of(29), of(31)].map(({ verdict }) => verdict),
    ['ok', 'ok', 'warning', 'warning'],
  )
  t.match(of(5), { fix: { needsRestart: false } })
})

test('a file that sorts before the drop-in is beaten by it, one after it is not', async (t) => {
  const of = (file: string) => shutdownDelay({ ...shutdown, assignments: [{ file, value: '3' }] })
  t.match(of('/usr/lib/systemd/logind.conf.d/zz-a.conf'), {
    fix: {},
    remedy: /^Put InhibitDelayMaxSec=30 below \[Login\] in/,
  })
  t.match(of('/run/systemd/logind.conf.d/zz-c.conf'), { fix: undefined, remedy: /^Set InhibitDelayMaxSec=30 in \/run/ })
  t.match(of('/etc/systemd/zzz.conf'), { fix: {} }, 'the main file is read before all drop-ins')
})

test('a restart at a time that is "now" is one at once, and the file to edit is that of the time', async (t) => {
  const of = (...content: readonly string[]) =>
    automaticRestart(aptSettings(content.map((text, i) => ({ path: `/etc/apt/apt.conf.d/5${i}`, content: text }))))
  const on = 'Unattended-Upgrade::Automatic-Reboot "true";'
  t.match(of(on, 'Unattended-Upgrade::Automatic-Reboot-Time "now";'), { found: /at once after an upgrade.*\/50\)/ })
  t.match(of(on, 'Unattended-Upgrade::Automatic-Reboot-Time "02:00";'), {
    found: /at 02:00 \(\S*\/50\)/,
    remedy: /in \S*\/51,/,
  })
  t.match(of(on), { remedy: /in \S*\/50,/ })
})

test('an agent without a unit, and one that starts, are distinguished', async (t) => {
  t.match(agentUnit(undefined, true, undefined), [{ verdict: 'unknown', found: /systemd does not answer/ }])
  t.match(agentUnit(undefined, true, 812), [{ verdict: 'warning', found: /The agent runs \(process 812\)/ }])
  const unit = { load: 'loaded', active: 'activating', file: 'enabled', watchdogSeconds: 0 }
  t.match(agentUnit(unit, true, undefined), [
    { verdict: 'ok', found: 'The unit bramble-agent is enabled and activating' },
  ])
  t.match(agentUnit({ ...unit, active: 'inactive' }, false, undefined), [
    { verdict: 'ok', found: /once this machine has joined/ },
  ])
  t.match(agentUnit({ ...unit, active: 'inactive' }, true, undefined), [{ verdict: 'problem' }])
  const missing = { ...unit, load: 'not-found' }
  t.match(agentUnit(missing, true, undefined), [{ found: 'There is no unit bramble-agent (not-found)' }])
  t.match(agentUnit(missing, true, 812), [{ found: /; the agent runs as process 812$/ }])
})
