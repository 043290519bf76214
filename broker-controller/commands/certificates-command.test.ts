import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { administrator, nodeIdentity } from '../../api/identity.ts'
import { trustedAuthoritiesAnnotation } from '../../api/node/hardware-identity.ts'
import { openAuthority } from '../../certs/authority.ts'
import { caHash } from '../../certs/ca-hash.ts'
import { issueServer } from '../../certs/issue.ts'
import { kubeconfigText } from '../../certs/kubeconfig.ts'
import { beginRollover, changeOver, rolloverIn } from '../../certs/rollover.ts'
import { systemClock } from '../../daemon/clock.ts'
import { formatDuration } from '../../daemon/duration.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { ensureClusterInfo } from '../assembly/bootstrap-objects.ts'
import { revocationsIn, revocationsKey } from '../store/revocations.ts'
import { startApi } from '../testing/api-under-test.ts'
import { certificatesCommand } from './certificates-command.ts'
import { adminSocket, adminSocketPath, type LeaderStatus } from './connection/admin-socket.ts'

const nowMs = Date.UTC(2026, 5, 1)
const servedMs = Math.floor(Date.now() / 1000) * 1000
const notLoaded = /No running controller loaded this change: it takes effect at the next start/

test('a step of a rollover that was interrupted before the reload is loaded when it is run again', async (t) => {
  const { folder, run, reloads, openSocket } = await aFleet(t)
  await beginRollover(folder, nowMs)
  await changeOver(folder)
  const { hash } = await rolloverIn(folder)
  t.match(await run('change-over'), { code: 0, out: notLoaded })
  await openSocket()
  t.same(await run('change-over'), { code: 0, out: `The authority is already ${hash}.\n`, error: '' })
  t.equal(reloads(), 1)
})

test('that only one authority is trusted reaches the controller also when nothing is left to do', async (t) => {
  const { folder, run, reloads, openSocket } = await aFleet(t)
  await openSocket()
  const { hash } = await rolloverIn(folder)
  t.same(await run('finish'), { code: 0, out: `Only ${hash} is trusted.\n`, error: '' })
  t.equal(reloads(), 1)
})

test('a change that no controller loaded is reported', async (t) => {
  const { run, openSocket } = await aFleet(t)
  t.match(await run('begin'), { code: 0, out: notLoaded })
  await openSocket()
  const { out } = await run('begin')
  t.match(out, /copy .*kubeconfig again before that\.\n$/)
})

test('all certificates are listed with what is left of them, then those that are revoked', async (t) => {
  const { api, run, addNode } = await aServedFleet(t)
  const server = issueServer(api.authority, { names: ['localhost'], nowMs: servedMs }).certificate
  await writeFile(join(api.folder, 'server.crt'), server)
  const signedBy = `sha256:${'a'.repeat(64)}`
  const ofMs = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`
  await addNode('pi-1', { until: ofMs(servedMs + 90_000), authority: signedBy })
  await addNode('pi-2', { until: ofMs(servedMs), authority: signedBy })
  await addNode('pi-3')
  await run('revoke', 'pi-2', '--reason', 'Stolen')
  const ofFile = (what: string, pem: string) => {
    const { validTo } = new X509Certificate(pem)
    const untilMs = Date.parse(validTo)
    return `${what} | ${ofMs(untilMs)} | ${formatDuration(untilMs - servedMs)} | ${caHash(pem).slice(0, 23)}`
  }
  const { code, out } = await run()
  t.equal(code, 0)
  t.same(out.replace(/ {2,}/g, ' | ').split('\n'), [
    'CERTIFICATE | UNTIL | LEFT | KEY, OF NODES: SIGNED BY',
    ofFile('authority', api.authority.certificate),
    ofFile('server', server),
    ofFile('administrator', api.admin),
    `node pi-1 | ${ofMs(servedMs + 90_000)} | 1m30s | ${signedBy.slice(0, 23)}`,
    `node pi-2 | ${ofMs(servedMs)} | ENDED | ${signedBy.slice(0, 23)}`,
    'node pi-3 | not seen since the controller started',
    `revoked: system:node:pi-2, certificates issued before ${ofMs(servedMs)} (Stolen)`,
    '',
  ])
})

test('where no certificate of a node is seen, that which it was issued last is listed', async (t) => {
  const { api, run, addNode } = await aServedFleet(t)
  await addNode('pi-1')
  await addNode('pi-2', { until: '2030-01-01T00:00:00Z', authority: 'sha256:seen' })
  await addNode('pi-3')
  const name = 'bramble-issued-certificates-3'
  const certificates = [
    '02 sha256:new 2026-05-02T00:00:00Z 2031-01-01T00:00:00Z system:node:pi-1',
    '01 sha256:old 2026-05-01T00:00:00Z 2032-01-01T00:00:00Z system:node:pi-1',
    '03 sha256:new 2026-05-02T00:00:00Z 2031-01-01T00:00:00Z system:node:pi-2',
    '* sha256:old 1970-01-01T00:00:00Z 2031-01-01T00:00:00Z system:node:pi-3',
  ].join('\n')
  const metadata = { name, namespace: 'kube-system' }
  await api.store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { certificates } })
  const { out } = await run()
  const rows = out
    .replace(/ {2,}/g, ' | ')
    .split('\n')
    .filter((line) => line.startsWith('node '))
  t.match(rows, [
    /^node pi-1 \| 2031-01-01T00:00:00Z \| .* \| sha256:new$/,
    /^node pi-2 \| 2030-01-01T00:00:00Z \| .* \| sha256:seen$/,
    /^node pi-3 \| not seen since the controller started$/,
  ])
})

test('certificates of nodes and of other users are revoked, again with those issued since', async (t) => {
  const { api, run } = await aServedFleet(t)
  const revoked = async () => [...revocationsIn(await api.store.get('configmaps', revocationsKey)).values()]
  const answer = (user: string) =>
    `All certificates that ${user} was issued until now are revoked; its connections are closed. To admit it again, let it join again with a token, and approve its request ('kubectl certificate approve').\n`
  t.same(await run('revoke', 'pi-1'), { code: 0, out: answer('system:node:pi-1'), error: '' })
  t.same(await run('revoke', 'example:robot', '--reason', 'Left'), { code: 0, out: answer('example:robot'), error: '' })
  const first = { user: 'system:node:pi-1', beforeMs: servedMs, reason: 'Revoked' }
  t.same(await revoked(), [first, { user: 'example:robot', beforeMs: servedMs, reason: 'Left' }])
  await run('revoke', 'pi-1', '--reason', 'Stolen')
  t.match(
    (await revoked()).find(({ user }) => user === first.user),
    { beforeMs: servedMs + 1_000, reason: 'Stolen' },
  )
  t.same(await run('revoke', 'kubernetes-admin'), {
    code: 0,
    out: `All kubeconfigs of administrators issued until now are revoked: the new one is ${join(api.folder, 'kubeconfig')}.\n`,
    error: '',
  })
  t.match((await revoked()).map(({ user }) => user).sort(), ['example:robot', 'kubernetes-admin', 'system:node:pi-1'])
})

test('what cannot be revoked is refused with its cause', async (t) => {
  const { api, run } = await aServedFleet(t)
  t.same(await run('revoke', 'pi-1', '--reason', 'was stolen'), {
    code: 1,
    out: '',
    error: '--reason must be one word, as Stolen, not "was stolen"\n',
  })
  t.equal(await api.store.get('configmaps', revocationsKey), undefined)
  const node = await api.kubeconfigFor('node', api.issueFor(nodeIdentity('pi-1')))
  t.match(await run('revoke', 'pi-2', '--kubeconfig', node), {
    code: 1,
    error:
      /^Cannot read the list of revoked certificates: configmaps "bramble-revoked-certificates" is forbidden: .* \(status 403\)\n$/,
  })
  for (const wrong of [['revoke'], ['rollover'], ['rollover', 'undo'], ['--what']])
    t.match(await run(...wrong), { code: 64 })
})

test('an authority is replaced once the nodes that are left behind have followed, or are left behind', async (t) => {
  const { api, run, addNode } = await aServedFleet(t)
  const folder = join(api.folder, 'authority')
  const kubeconfig = join(api.folder, 'kubeconfig')
  const unloaded =
    'No running controller loaded this change: it takes effect at the next start (systemctl restart bramble-controller).\n'
  t.match(await run('rollover', 'change-over', '--force'), {
    code: 1,
    error: /^There is no next authority to change over to/,
  })
  const begun = await run('rollover', 'begin')
  const { next = '', hash: before } = await rolloverIn(folder)
  t.equal(
    begun.out,
    `The next authority is ${next}. Nodes that are connected trust it within a minute, others when they are back.
'bramble-controller certificates rollover change-over' checks that all do, and then signs with it. Kubeconfigs that were copied
before do not contain it: copy ${kubeconfig} again before that.
${unloaded}`,
  )
  await addNode('pi-0', { authority: next }, [before, next].join())
  await addNode('pi-1', { authority: before }, before)
  t.same(await run('rollover', 'change-over'), {
    code: 1,
    out: '',
    error:
      'Nodes pi-1 do not trust the next authority yet; they would have to join again. Wait for them, delete those that are gone for good, or give --force\n',
  })
  t.equal((await rolloverIn(folder)).stage, 'begun')
  t.same(await run('rollover', 'change-over', '--force'), {
    code: 0,
    out: `The authority is now ${next}: new join commands contain it. Nodes get certificates of it within minutes.
The previous one is trusted until 'bramble-controller certificates rollover finish'.
${unloaded}`,
    error: '',
  })
  for (let node = 2; node <= 11; node++) await addNode(`pi-${node + 10}`)
  t.same(await run('rollover', 'finish'), {
    code: 1,
    out: '',
    error:
      'Nodes pi-1, pi-12, pi-13, pi-14, pi-15, pi-16, pi-17, pi-18, pi-19, pi-20 and 1 more have no certificate of the present authority yet; they would have to join again. Wait for them, delete those that are gone for good, or give --force\n',
  })
  await api.store.delete('nodes', { namespace: '', name: 'pi-21' })
  t.match(await run('rollover', 'finish'), { code: 1, error: /^Nodes pi-1, .*, pi-20 have no certificate/ })
  t.same(await run('rollover', 'finish', '--force'), {
    code: 0,
    out: `Only ${next} is trusted now. Earlier kubeconfigs are no longer valid: the new one is ${kubeconfig}.\n${unloaded}`,
    error: '',
  })
  t.same(await rolloverIn(folder), { stage: 'none', hash: next })
})

test('an authority is replaced without --force where every node has followed', async (t) => {
  const { api, run, addNode } = await aServedFleet(t)
  await run('rollover', 'begin')
  const { next = '' } = await rolloverIn(join(api.folder, 'authority'))
  await addNode('pi-1', { authority: next }, next)
  for (const step of ['change-over', 'finish']) t.match(await run('rollover', step), { code: 0 }, step)
})

test('each step on the leader prints where to copy the folder of the authority', async (t) => {
  const { api, run, addNode, serveFleetOf, openSocket } = await aServedFleet(t)
  await openSocket()
  const note = (folder: string) =>
    `Copy ${folder} to the other controllers now, and restart them (the fleet has https://a:6443, https://b:6443).\n`
  const folder = join(api.folder, 'authority')
  await serveFleetOf('https://a:6443')
  t.notMatch((await run('rollover', 'begin')).out, /Copy/, 'the only controller')
  await serveFleetOf('https://a:6443', 'https://b:6443')
  const { next = '' } = await rolloverIn(folder)
  await addNode('pi-1', { authority: next }, next)
  for (const step of ['begin', 'change-over', 'finish']) {
    const { code, out, error } = await run('rollover', step)
    t.equal(code, 0, error)
    t.ok(out.endsWith(`\n${note(folder)}`), `${step}: ${out}`)
  }
})

test('a step on a standby is refused with the leader and the command, and changes nothing', async (t) => {
  const { api, run, openSocket } = await aServedFleet(t)
  const folder = join(api.folder, 'authority')
  const before = await rolloverIn(folder)
  let leader: string | undefined = 'https://b:6443'
  const { reloads } = await openSocket(() => ({ leads: false, ...(leader !== undefined && { leader }) }))
  for (const step of ['begin', 'change-over', 'finish']) {
    t.same(await run('rollover', step, '--force'), {
      code: 1,
      out: '',
      error: `The controller on this machine stands by, and https://b:6443 leads: run 'bramble-controller certificates rollover ${step}' on that machine\n`,
    })
  }
  leader = undefined
  t.match(await run('rollover', 'begin'), {
    code: 1,
    error:
      /stands by, and no controller leads now: run 'bramble-controller certificates rollover begin' where one leads/,
  })
  t.same(await rolloverIn(folder), before)
  t.equal(reloads(), 0)
  t.match(await run(), { code: 0 }, 'the list is the same on each controller')
})

test('where no controller runs and another one leads, a step is refused, too', async (t) => {
  const { api, run, serveFleetOf } = await aServedFleet(t)
  await serveFleetOf('https://b:6443', 'https://a:6443')
  const { code, error } = await run('rollover', 'begin')
  t.equal(code, 1)
  t.match(error, /^No controller runs on .*, and https:\/\/b:6443 leads: run 'bramble-controller certificates rollover/)
  t.match(await rolloverIn(join(api.folder, 'authority')), { stage: 'none' })
})

/** A fleet with an API whose data directory is also that of the command. Its time stands still, at a full second. */
async function aServedFleet(t: Test) {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(() => api.stop())
  const issued = api.issueFor(administrator)
  const text = kubeconfigText({ server: api.url, ca: api.authority.certificate, ...issued })
  await writeFile(join(api.folder, 'kubeconfig'), text, { mode: 0o600 })
  return {
    api: { ...api, admin: issued.certificate },
    /** `trusts`: hashes of authorities, separated by commas. */
    async addNode(name: string, reported?: { readonly until?: string; readonly authority?: string }, trusts?: string) {
      const annotations = { ...(trusts !== undefined && { [trustedAuthoritiesAnnotation]: trusts }) }
      await api.store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, annotations } })
      if (reported === undefined) return
      const { until, authority } = reported
      const ofLease = {
        ...(until !== undefined && { 'bramble.dev/certificate-until': until }),
        ...(authority !== undefined && { 'bramble.dev/certificate-authority': authority }),
      }
      await api.store.create('leases', {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name, namespace: 'kube-node-lease', annotations: ofLease },
      })
    },
    /** Writes the addresses of all controllers, that of the leader first. */
    async serveFleetOf(...apiServers: readonly string[]) {
      const info = { server: api.url, mqttPort: 8883, caHash: api.authority.hash, trusted: api.authority.trusted }
      const servers = { apiServers, mqttServers: [] }
      await ensureClusterInfo({ store: api.store, clock: systemClock }, { ...info, servers })
    },
    openSocket: (leaderStatus?: () => LeaderStatus) => openAdminSocket(t, api.folder, leaderStatus),
    run: (...args: readonly string[]) => runCertificates([...args, '--data-dir', api.folder], servedMs),
  }
}

async function aFleet(t: Test) {
  const dataDir = await mkdtemp(join(tmpdir(), 'certificates-'))
  t.teardown(() => rm(dataDir, { recursive: true }))
  const folder = join(dataDir, 'authority')
  await openAuthority(folder, nowMs)
  let reloads = () => 0
  return {
    folder,
    reloads: () => reloads(),
    async openSocket() {
      reloads = (await openAdminSocket(t, dataDir)).reloads
    },
    run: (step: string) => runCertificates(['rollover', step, '--data-dir', dataDir], nowMs),
  }
}

/** That of a running controller, which leads unless it is given otherwise. */
async function openAdminSocket(t: Test, dataDir: string, leaderStatus = (): LeaderStatus => ({ leads: true })) {
  let reloads = 0
  const reload = async () => void reloads++
  const backup = () => Promise.reject(new Error('not asked for'))
  const socket = adminSocket({
    path: adminSocketPath(dataDir),
    backup,
    reload,
    rotateSecretsKey: backup,
    settings: () => '{}',
    leaderStatus,
    log: quietLog(t),
  })
  await socket.listen()
  const stop = new AbortController()
  const running = socket.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await running
  })
  return { reloads: () => reloads }
}

async function runCertificates(argv: readonly string[], nowMs: number) {
  let [out, error] = ['', '']
  const code = await certificatesCommand(argv, {
    stdout: (text) => {
      out += text
    },
    stderr: (text) => {
      error += text
    },
    signal: new AbortController().signal,
    nowMs,
  })
  return { code, out, error }
}
