import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { decodeKioskLink, encodeKioskLink } from '../../api/access/kiosk-link.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { secretDigest } from '../apiserver/browser-sessions/dashboard-sessions.ts'
import { startApi } from '../testing/api-under-test.ts'
import { dashboardCommand, loginLinkCommand } from './dashboard-command.ts'

const clusterInfo = (server: string) => `apiVersion: v1
kind: Config
clusters: [{name: '', cluster: {server: ${JSON.stringify(server)}, certificate-authority-data: ''}}]
contexts: [{name: '', context: {cluster: '', user: ''}}]
current-context: ''
`

async function aCommand(t: Parameters<typeof quietLog>[0] & { teardown(end: () => Promise<unknown>): void }) {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(() => api.stop())
  await api.store.create('configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'kube-public', name: 'cluster-info' },
    data: { kubeconfig: clusterInfo('https://fleet.example:6443') },
  })
  const admin = api.issueFor({ user: 'kubernetes-admin', groups: ['system:masters'] })
  const kubeconfig = await api.kubeconfigFor('command', admin)
  const run = async (command: typeof dashboardCommand | typeof loginLinkCommand, ...argv: readonly string[]) => {
    const [out, errors]: string[][] = [[], []]
    const code = await command([...argv, '--kubeconfig', kubeconfig], {
      stdout: (text) => void out?.push(text),
      stderr: (text) => void errors?.push(text),
      signal: new AbortController().signal,
      nowMs: Date.parse('2026-01-01T00:00:00Z'),
      randomBytes,
    })
    return { code, stdout: out?.join('') ?? '', stderr: errors?.join('') ?? '' }
  }
  return { run, store: api.store }
}

test('a kiosk link is printed once; the fleet keeps its digest, lists and revokes it', async (t) => {
  const { run, store } = await aCommand(t)
  const made = await run(dashboardCommand, 'kiosk', 'create', '--ttl', '24h', '--description', 'hall')
  const [, id = '', secret = ''] =
    /^https:\/\/fleet\.example:6443\/ui\/#kiosk=([0-9a-f]{12})\.([\w-]{32})\n$/.exec(made.stdout) ?? []
  t.not(id, '', made.stderr)
  const kept = await store.get('secrets', { namespace: 'kube-system', name: `bramble-kiosk-${id}` })
  t.match(kept && decodeKioskLink(kept), {
    digest: secretDigest(secret).toString('base64'),
    expiration: '2026-01-02T00:00:00Z',
  })
  t.notOk(JSON.stringify(kept).includes(Buffer.from(secret).toString('base64')), 'the secret is not kept')
  t.match((await run(dashboardCommand, 'kiosk', 'list')).stdout, new RegExp(`${id} +2026-01-02T00:00:00Z +hall`))
  t.match(await run(dashboardCommand, 'kiosk', 'revoke', id), { code: 0 })
  t.match(await run(dashboardCommand, 'kiosk', 'revoke', id), { code: 1, stderr: `There is no kiosk link ${id}` })
})

test('texts of a list cannot control the terminal', async (t) => {
  const { run, store } = await aCommand(t)
  const link = { id: '0123456789ab', digest: 'x', expiration: '\u001b[2J', description: 'M\u00fcnchen\u202e\n' }
  const { stringData = {}, ...secret } = encodeKioskLink(link)
  const encoded = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')])
  await store.create('secrets', { ...secret, data: Object.fromEntries(encoded) })
  t.match((await run(dashboardCommand, 'kiosk', 'list')).stdout, /^0123456789ab +\?\[2J +M\u00fcnchen\?\?$/m)
})

test('what was typed wrong is refused before anything is asked', async (t) => {
  const { run } = await aCommand(t)
  t.match((await run(dashboardCommand, 'revoke', '../secrets')).stderr, 'twelve characters')
  t.match((await run(dashboardCommand, 'kiosk', 'create', '--ttl', 'soon')).stderr, '--ttl')
  t.match((await run(loginLinkCommand, '--group', 'ops')).stderr, '--user')
})

test('without a dashboard the reason is printed', async (t) => {
  const { run } = await aCommand(t)
  t.match(await run(loginLinkCommand), { code: 1, stderr: /Cannot create a login link: .*\(status 404\)/ })
})
