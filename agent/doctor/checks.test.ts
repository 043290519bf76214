/** Every check, on facts made by hand. */
import { test } from 'tap'
import { openAuthority } from '../../certs/authority.ts'
import { issueNode } from '../../certs/issue.ts'
import type { Identity } from '../join/identity.ts'
import { agentFilesFindings, configurationFinding } from './agent-files.ts'
import { aptSettings } from './apt-settings.ts'
import { marksFindings } from './clones.ts'
import { type ControllerReading, controllerFindings } from './controller.ts'
import { type DockerFacts, dockerFindings } from './docker.ts'
import type { Finding } from './finding.ts'
import { dockerFinding, filesystemFinding, halves, sensorFindings } from './health.ts'
import { identityFindings } from './identity.ts'
import { memoryCgroupFinding, withMemoryCgroup } from './kernel.ts'
import { agentPort, askedPort } from './ports.ts'
import { agentUnit, automaticRestart, delayDropIn, type ShutdownReading, shutdownDelay } from './shutdown.ts'
import { journalFinding, spaceFindings } from './storage.ts'
import { clockFinding, controllerClock } from './time.ts'

const verdicts = (findings: readonly Finding[]) =>
  Object.fromEntries(findings.map(({ check, verdict }) => [check, verdict]))
const day = 86_400_000

test('the line for the kernel stays one line, and has the words once', async (t) => {
  const words = 'cgroup_enable=memory cgroup_memory=1'
  t.equal(withMemoryCgroup('console=tty1 rootwait\n'), `console=tty1 rootwait ${words}\n`)
  t.equal(withMemoryCgroup('console=tty1 rootwait'), `console=tty1 rootwait ${words}`, 'without an end of line')
  t.equal(withMemoryCgroup('  a  b \n\n'), `a b ${words}\n`)
  t.equal(withMemoryCgroup('a cgroup_memory=0 b'), `a b ${words}`)
  t.equal(withMemoryCgroup('a cgroup_disable=memory b'), `a b ${words}`)
  t.equal(withMemoryCgroup('a cgroup_disable=cpuset,memory'), `a cgroup_disable=cpuset ${words}`)
  t.equal(withMemoryCgroup('cgroup_memory=1 a'), 'cgroup_memory=1 a cgroup_enable=memory')
  const done = `a ${words} b\n`
  t.equal(withMemoryCgroup(done), done, 'twice is once')
  t.equal(withMemoryCgroup('a\nb\n'), undefined, 'of two lines the firmware reads one')
  t.equal(withMemoryCgroup('\n'), undefined)
})

test('memory limits that are off are put right in the file of this release, and then a restart is missing', async (t) => {
  const path = '/boot/firmware/cmdline.txt'
  const reading = { isEnabled: false, commandLine: 'a cgroup_disable=memory', file: path }
  const found = memoryCgroupFinding(reading, { path, content: 'a\n', mode: 0o755 })
  t.match(found, {
    verdict: 'problem',
    remedy: /cmdline\.txt, then restart/,
    fix: {
      needsRestart: true,
      steps: [
        {
          kind: 'write',
          path,
          content: 'a cgroup_enable=memory cgroup_memory=1\n',
          instead: 'a\n',
          mode: 0o755,
          backup: `${path}.before-bramble`,
        },
      ],
    },
  })
  const after = memoryCgroupFinding(reading, { path, content: 'a cgroup_enable=memory cgroup_memory=1\n', mode: 0o755 })
  t.match(after, { verdict: 'warning', remedy: /^Restart the machine/, fix: undefined })
  t.match(memoryCgroupFinding({ ...reading, file: '/etc/default/grub' }, undefined), {
    verdict: 'problem',
    fix: undefined,
  })
  t.match(memoryCgroupFinding(reading, { path, content: 'a\nb\n', mode: 0o755 }), {
    verdict: 'problem',
    fix: undefined,
  })
  t.equal(memoryCgroupFinding({ ...reading, isEnabled: true }, undefined).verdict, 'ok')
  t.equal(memoryCgroupFinding(undefined, undefined).verdict, 'unknown')
})

test('what is wrong and what to do are told apart in every message of the health conditions', async (t) => {
  t.same(halves('the root filesystem (/dev/mmcblk0p2) fails: EIO: i/o error: save what you can'), {
    found: 'The root filesystem (/dev/mmcblk0p2) fails: EIO: i/o error',
    remedy: 'Save what you can',
  })
  t.same(halves('Too hot: cpu (limit 80 °C). Give the machine air'), {
    found: 'Too hot: cpu (limit 80 °C)',
    remedy: 'Give the machine air',
  })
  t.same(halves('Docker answers'), { found: 'Docker answers', remedy: undefined })
  const bad = sensorFindings({
    power: { underVoltage: { now: true, before: true }, throttling: { now: true, before: true, by: ['throttled'] } },
    temperature: {
      zones: [{ name: 'cpu', celsius: 99, trips: [{ kind: 'critical', celsius: 100 }] }],
      board: undefined,
    },
    flash: [{ name: 'mmcblk0', lifeTime: [11, 2], preEndOfLife: 3 }],
    radio: [{ name: 'wlan0', signalDbm: -90 }],
  })
  t.same(new Set(Object.values(verdicts(bad))), new Set(['problem']))
  for (const { check, found, remedy } of bad) {
    t.match(remedy, /^[A-Z][a-z]+ /, `${check}: ${remedy}`)
    t.notMatch(found, /: (use|give|move|replace)/i)
  }
})

test('what was wrong since the start is a warning, and what nothing tells of is not known', async (t) => {
  const seen = { now: false, before: true }
  const found = sensorFindings({
    power: { underVoltage: seen, throttling: { ...seen, by: [] } },
    temperature: { zones: [], board: undefined },
    flash: [],
    radio: [],
  })
  t.same(verdicts(found), {
    'supply-voltage': 'warning',
    throttling: 'warning',
    temperature: 'unknown',
    'storage-wear': 'unknown',
    wifi: 'unknown',
  })
})

test('filesystems', async (t) => {
  const root = { role: 'root', path: '/', device: '/dev/sda1', errors: 0, failure: undefined } as const
  t.match(filesystemFinding([{ ...root, isReadOnly: true, isMeantSo: false }]), { verdict: 'problem', remedy: /fsck/ })
  t.match(filesystemFinding([{ ...root, isReadOnly: true, isMeantSo: true }]), {
    verdict: 'ok',
    found: /configured so/,
  })
  t.equal(filesystemFinding([]).verdict, 'unknown')
})

const engine: DockerFacts = {
  version: '26.1.5',
  storageDriver: 'overlay2',
  cgroupDriver: 'systemd',
  cgroupVersion: '2',
  liveRestore: true,
  rootDirectory: '/var/lib/docker',
}

test('Docker: there, well set up, or what is missing', async (t) => {
  const at = (answer: Parameters<typeof dockerFindings>[0]['answer']) =>
    dockerFindings({ socket: '/run/docker.sock', answer, isSystemdHere: true })
  t.same(verdicts(at(engine)), {
    docker: 'ok',
    'docker-storage': 'ok',
    'docker-cgroups': 'ok',
    'docker-live-restore': 'ok',
  })
  const poor = at({ ...engine, version: '19.03.8', storageDriver: 'vfs', cgroupDriver: 'cgroupfs', liveRestore: false })
  t.same(verdicts(poor), {
    docker: 'problem',
    'docker-storage': 'warning',
    'docker-cgroups': 'warning',
    'docker-live-restore': 'warning',
  })
  t.ok(poor.every(({ remedy }) => remedy !== undefined))
  t.equal(verdicts(at({ ...engine, storageDriver: 'aufs' }))['docker-storage'], 'warning')
  t.equal(verdicts(at({ ...engine, cgroupDriver: 'none' }))['docker-cgroups'], 'problem')
  t.match(at('absent'), [{ verdict: 'problem', found: /no \/run\/docker\.sock/ }])
  t.match(at('refuses'), [{ verdict: 'problem', found: /not running/ }])
  t.match(at('hangs'), [{ verdict: 'problem', found: /does not answer/ }])
  t.match(at('denied'), [{ verdict: 'unknown', remedy: /sudo/ }])
  t.equal(dockerFinding('unheard of', undefined).verdict, 'unknown')
})

const unattended = '/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf'
const shutdown: ShutdownReading = { hasLogind: true, assignments: [], grantedSeconds: undefined, wantedSeconds: 30 }

test('the time for pods at shutdown: who sets it, and a file of ours that wins', async (t) => {
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

test('the clock', async (t) => {
  const reading = { nowMs: Date.UTC(2026, 1), uptimeMs: 3_600_000, service: 'systemd-timesyncd', synchronized: true }
  const of = (changes: Partial<Parameters<typeof clockFinding>[0]>) => clockFinding({ ...reading, ...changes })
  t.match(of({}), { verdict: 'ok', found: /systemd-timesyncd/ })
  t.match(of({ synchronized: false }), { verdict: 'problem', remedy: /port 123/ })
  t.match(of({ synchronized: false, uptimeMs: 60_000 }), { verdict: 'ok' }, 'just started')
  t.match(of({ service: 'chrony', synchronized: undefined }), { verdict: 'unknown' })
  t.match(of({ service: undefined, synchronized: undefined }), { verdict: 'warning' })
  t.match(of({ service: undefined }), { verdict: 'ok' }, 'somebody unknown sets it')
  t.match(of({ nowMs: 0 }), { verdict: 'problem', found: /1970-01-01/ })
  t.match(controllerClock(800), { verdict: 'ok' })
  t.match(controllerClock(-3_600_000), { verdict: 'problem', found: /an hour behind/ })
  t.match(controllerClock(undefined), { verdict: 'unknown' })
})

test('room on the disks, by what pods are evicted for', async (t) => {
  const disk = { path: '/', capacityBytes: 32e9, availableBytes: 16e9, inodes: 1000, inodesFree: 900 }
  t.match(
    spaceFindings([disk]),
    [{ verdict: 'ok', found: '/: 15 GiB of 30 GiB' }, { verdict: 'ok' }].map(({ verdict }) => ({ verdict })),
  )
  t.match(spaceFindings([{ ...disk, availableBytes: 4e9 }]), [{ verdict: 'warning' }, { verdict: 'ok' }])
  t.match(spaceFindings([{ ...disk, availableBytes: 1e9 }]), [
    { verdict: 'problem', found: /954 MiB free of 30 GiB/ },
    {},
  ])
  t.match(spaceFindings([{ ...disk, inodesFree: 20 }]), [
    { verdict: 'ok' },
    { verdict: 'problem', found: /20 more files/ },
  ])
  t.match(
    spaceFindings([{ ...disk, inodes: 0, inodesFree: 0 }]),
    [{ verdict: 'ok' }, { verdict: 'ok' }],
    'FAT counts none',
  )
})

test('the journal wears a card, and no disk', async (t) => {
  const journal = { hasJournal: true, assignments: [], hasFolder: true, card: 'mmcblk0' }
  const volatile = [{ file: '/usr/lib/systemd/journald.conf.d/40-rpi.conf', value: 'volatile' }]
  t.match(journalFinding(journal), { verdict: 'warning', found: /mmcblk0/ })
  t.match(journalFinding({ ...journal, card: undefined }), { verdict: 'ok', found: /on disk/ })
  t.match(journalFinding({ ...journal, hasFolder: false }), { verdict: 'ok', found: /in memory/ })
  t.match(journalFinding({ ...journal, assignments: volatile }), { verdict: 'ok', found: /40-rpi\.conf/ })
  t.match(journalFinding({ ...journal, hasJournal: false }), { verdict: 'unknown' })
})

test('ports', async (t) => {
  const door = { port: 10248, listeners: [], agentPid: undefined, answer: undefined }
  const taken = [{ port: 10248, by: 'kubelet (process 7)' }]
  t.match(agentPort(door), { verdict: 'ok', found: /free/ })
  t.match(agentPort({ ...door, listeners: taken }), { verdict: 'problem', found: /kubelet \(process 7\)/ })
  t.match(agentPort({ ...door, listeners: taken, agentPid: 7, answer: { status: 200, text: 'ok' } }), { verdict: 'ok' })
  t.match(agentPort({ ...door, listeners: taken, agentPid: 7, answer: { status: 500, text: 'pods hangs' } }), {
    verdict: 'problem',
    found: /pods hangs/,
  })
  t.match(agentPort({ ...door, agentPid: 7 }), { verdict: 'warning', found: /does not answer/ })
  t.match(agentPort({ ...door, listeners: undefined }), { verdict: 'unknown' })
  t.match(
    [80, 10248].map((port) => askedPort(port, taken)),
    [{ check: 'port-80', verdict: 'ok' }, { verdict: 'problem' }],
  )
  t.match(askedPort(80, undefined), { verdict: 'unknown' })
})

test('the certificates of a node', async (t) => {
  const nowMs = Date.now()
  const authority = await openAuthority(`${t.testdir({})}/a`, nowMs)
  const other = await openAuthority(`${t.testdir({})}/b`, nowMs)
  const made = issueNode(authority, { nodeName: 'pi-01', nowMs, lifeMs: 100 * day })
  const identity: Identity = {
    nodeName: 'pi-01',
    apiUrl: 'https://fleet:6443',
    mqttUrl: 'mqtts://fleet:8883',
    ca: authority.certificate,
    ...made,
  }
  const at = (days: number, changes: Partial<Identity> = {}) =>
    identityFindings({ ...identity, ...changes }, nowMs + days * day)
  t.same(verdicts(at(0)), { identity: 'ok', 'node-certificate': 'ok', authority: 'ok' })
  t.match(at(95)[1], { verdict: 'warning', found: /4 days from now/, remedy: /renews/ })
  t.match(at(101)[1], { verdict: 'problem', found: /ended on/, remedy: /clock is right/ })
  t.match(at(-1), [{}, { verdict: 'problem', found: /it is behind/ }, { verdict: 'problem', found: /it is behind/ }])
  t.match(at(3640)[2], { verdict: 'warning' })
  t.match(at(3660)[2], { verdict: 'problem' })
  t.match(at(0, { nodeName: 'pi-02' })[0], { verdict: 'problem', found: /not that of node pi-02/ })
  t.match(at(0, { ca: other.certificate })[1], { verdict: 'problem', found: /not made by/ })
  t.match(at(0, { ca: `${other.certificate}${authority.certificate}` })[1], { verdict: 'ok' }, 'one of several')
  t.match(at(0, { key: issueNode(authority, { nodeName: 'pi-01', nowMs }).key })[0], {
    verdict: 'problem',
    found: /key/,
  })
  t.match(at(0, { certificate: 'nothing' }), [{ verdict: 'problem', found: /spoiled/ }])
  t.match(at(0, { ca: '' }), [{ verdict: 'problem', found: /spoiled/ }])
  t.match(identityFindings(undefined, nowMs), [{ verdict: 'warning', remedy: /--print-join-command/ }])
})

const ours = { boardSerial: '1', machineID: 'same', model: 'Pi 4' }
const reached: ControllerReading = {
  nodeName: 'pi-01',
  apiHost: 'fleet:6443',
  mqttHost: 'fleet:8883',
  port: 'open',
  api: { status: 200, message: undefined, nodeHardware: ours, aheadMs: 0 },
  mqtt: 'open',
  hardware: ours,
}

test('the way to the controller, and the machine it means', async (t) => {
  const failure = { error: 'connect ECONNREFUSED', remedy: 'Start it' }
  const said = (changes: object) => ({
    api: { status: 200, message: undefined, nodeHardware: ours, aheadMs: 0, ...changes },
  })
  const of = (changes: Partial<ControllerReading>) => controllerFindings({ ...reached, ...changes })
  t.same(verdicts(of({})), {
    'controller-port': 'ok',
    'controller-api': 'ok',
    'controller-clock': 'ok',
    hardware: 'ok',
    'mqtt-port': 'ok',
  })
  t.match(of({ port: failure, api: undefined, mqtt: failure }), [
    { check: 'controller-port', verdict: 'problem', found: /fleet:6443: connect ECONNREFUSED/, remedy: 'Start it' },
    { check: 'controller-api', verdict: 'unknown' },
    { check: 'mqtt-port', verdict: 'problem', found: /fleet:8883/ },
  ])
  t.match(of({ api: failure })[1], { check: 'controller-api', verdict: 'problem' })
  t.match(of(said({ status: 401, message: 'Unauthorized' }))[1], { verdict: 'problem', found: /Unauthorized/ })
  t.match(of(said({ status: 404 }))[1], { verdict: 'warning', found: /no node pi-01/ })
  t.match(of(said({ status: 503 }))[1], { verdict: 'problem', found: /503/ })
  t.match(of(said({ nodeHardware: { ...ours, boardSerial: '2' } }))[3], {
    check: 'hardware',
    verdict: 'problem',
    found: /board serial 2.*this one is .*board serial 1/,
    remedy: /card was copied.*systemd-machine-id-setup/,
  })
  t.match(of(said({ nodeHardware: { boardSerial: '2' } }))[3], { verdict: 'problem', remedy: /moved here/ })
  t.match(of(said({ nodeHardware: undefined }))[3], { verdict: 'unknown' })
})

test('names and marks that many machines share', async (t) => {
  const marks = { hostname: 'pi-01', machineID: '3d1219c7c4c5404aaa1f6d2a48adfda4\n', nodeName: undefined }
  const of = (changes: Partial<Parameters<typeof marksFindings>[0]>) =>
    verdicts(marksFindings({ ...marks, ...changes }))
  t.same(of({}), { hostname: 'ok', 'machine-id': 'ok' })
  t.same(of({ nodeName: 'pi-01', hostname: 'PI-01' }), { hostname: 'ok', 'machine-id': 'ok' })
  t.same(of({ nodeName: 'pi-02' }), { hostname: 'warning', 'machine-id': 'ok' })
  t.same(of({ hostname: 'raspberrypi', machineID: 'uninitialized\n' }), {
    hostname: 'warning',
    'machine-id': 'warning',
  })
  t.same(of({ hostname: 'my_pi', machineID: undefined }), { hostname: 'problem', 'machine-id': 'warning' })
  t.same(of({ hostname: undefined, machineID: '0'.repeat(32) }), { hostname: 'unknown', 'machine-id': 'warning' })
})

test("the agent's own files", async (t) => {
  const path = '/data'
  const files = {
    dataPath: path,
    dataDirectory: { path, mode: 0o700 },
    identity: { path: '/data/identity.json', mode: 0o600 },
    isWritable: true,
  }
  t.same(verdicts(agentFilesFindings(files)), { 'data-directory': 'ok', 'identity-file': 'ok' })
  const open = agentFilesFindings({
    ...files,
    dataDirectory: { path, mode: 0o755 },
    identity: { path: '/i', mode: 0o644 },
  })
  t.match(open, [
    { verdict: 'warning', fix: { steps: [{ kind: 'mode', path, mode: 0o700 }] } },
    { verdict: 'problem', fix: { steps: [{ kind: 'mode', path: '/i', mode: 0o600 }], needsRestart: false } },
  ])
  t.match(agentFilesFindings({ ...files, isWritable: false }), [{ verdict: 'problem' }, {}])
  t.match(agentFilesFindings({ ...files, dataDirectory: undefined, identity: undefined }), [{ verdict: 'ok' }])
  t.equal(configurationFinding(undefined, undefined).verdict, 'ok')
  t.equal(configurationFinding('/a', undefined).verdict, 'ok')
  t.match(configurationFinding('/a', 'maxPods: wrong'), { verdict: 'problem', found: 'maxPods: wrong' })
})
