/** The checks that need few words, on facts made by hand. */
import { test } from 'tap'
import { clockCheck, clockSynchronized } from '../health/clock.ts'
import { verdicts } from '../testing/verdicts.ts'
import { agentFilesFindings, configurationFinding } from './agent-files.ts'
import { bootLoopFinding } from './boot-loop.ts'
import { healthFinding } from './health.ts'
import { agentPort, askedPort, mdnsPort } from './ports.ts'
import { evictionFinding, journalFinding, spaceFindings } from './storage.ts'
import { clockFinding, controllerClock } from './time.ts'

test('the clock', async (t) => {
  const reading = { nowMs: Date.UTC(2026, 1), uptimeMs: 3_600_000, service: 'systemd-timesyncd', synchronized: true }
  const of = (changes: Partial<Parameters<typeof clockFinding>[1] & { uptimeMs: number }>) => {
    const { uptimeMs, ...time } = { ...reading, ...changes }
    const condition = clockSynchronized({ synchronized: time.synchronized, uptimeMs, controller: undefined })
    return clockFinding(healthFinding(clockCheck, condition), time)
  }
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

test('a disk below a threshold of eviction is a problem with a remedy', async (t) => {
  t.match(evictionFinding([]), { check: 'eviction', verdict: 'ok' })
  t.match(evictionFinding(['/ has 12 % free', '/data has none']), {
    verdict: 'problem',
    found: '/ has 12 % free; /data has none',
    remedy: /^Make room .* evictionHard/,
  })
})

test('room on the disks', async (t) => {
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

test('pods that are held back after a boot loop', async (t) => {
  t.match(bootLoopFinding([], 0), { verdict: 'ok' })
  t.match(bootLoopFinding(['default/web', 'shop/db'], 17 * 60_000), {
    verdict: 'warning',
    found: /for 43 more minutes.*: default\/web, shop\/db$/,
    remedy: /annotate pod -n default web .*=false', 'kubectl annotate pod -n shop db /,
  })
  t.match(bootLoopFinding(['default/web'], 61 * 60_000), { found: /until its next start has done no harm/ })
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

test('the port of multicast DNS', async (t) => {
  t.match(mdnsPort(undefined), { check: 'mdns-port', verdict: 'ok' })
  t.match(mdnsPort('EADDRINUSE'), { verdict: 'problem', found: /EADDRINUSE/, remedy: /ss -lunp/ })
})
