import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { systemClock as clock } from '../../daemon/clock.ts'
import { metricsRegistry } from '../../daemon/metrics-registry.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'
import { auditFile } from './audit/audit-file.ts'
import { auditLog } from './audit/audit-log.ts'

test('what kubectl writes is in the audit log, and what it reads is not', { skip: whyNoKubectl() }, async (t) => {
  const { api, lines } = await audited(t)
  const { kubectl } = api
  await kubectl(['create', 'secret', 'generic', 'db', '--from-literal=password=hunter2'])
  await kubectl(['get', 'secrets'])
  await kubectl(['label', 'secret', 'db', 'a=b', '--as=eve', '--as-group=system:masters'])
  await kubectl(['delete', 'secret', 'db', '--dry-run=server'])
  const eve = await api.issueFor({ user: 'eve', groups: ['team'] })
  const kubeconfig = await api.kubeconfigFor('eve', eve)
  const path = '/api/v1/namespaces/default/secrets/db'
  t.match(await kubectl(['delete', '--raw', path], { kubeconfig }), { code: 1, stderr: /Forbidden/ })
  t.equal((await kubectl(['delete', '--raw', path, '--as=ada'], { kubeconfig })).code, 1)
  const stranger = await fetchRefused(`${api.url}/api/v1/namespaces/default/pods`)
  t.match(stranger, /^[0-9a-f-]{36}$/, 'the answer has the ID')

  const { events, text } = await lines()
  t.notMatch(text, /hunter2|aHVudGVyMg|BEGIN|Bearer/)
  const administrator = { username: 'kubernetes-admin' }
  const secret = { resource: 'secrets', namespace: 'default', name: 'db', apiVersion: 'v1' }
  const forbidden = { status: 'Failure', reason: 'Forbidden', code: 403 }
  t.match(events, [
    { verb: 'create', user: administrator, objectRef: secret, responseStatus: { code: 201 }, sourceIPs: ['127.0.0.1'] },
    { verb: 'patch', user: administrator, impersonatedUser: { username: 'eve' }, objectRef: secret },
    { verb: 'delete', responseStatus: { code: 200 } },
    {
      verb: 'delete',
      user: { username: 'eve' },
      responseStatus: forbidden,
      annotations: { 'authorization.k8s.io/decision': 'forbid' },
    },
    { verb: 'delete', user: { username: 'eve' }, impersonatedUser: undefined, responseStatus: forbidden },
    { verb: 'create', user: { username: 'system:anonymous' }, auditID: stranger },
  ])
  t.match(events[0].annotations, { 'authorization.k8s.io/decision': 'allow' })
  t.match(events[0].userAgent, /kubectl/)
  t.ok(Date.parse(events[0].stageTimestamp) >= Date.parse(events[0].requestReceivedTimestamp))
  t.equal(new Set(events.map(({ auditID }) => auditID)).size, 6)
})

/** The Audit-Id of the answer to a POST without credentials. */
async function fetchRefused(url: string): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method: 'POST', rejectUnauthorized: false }, (answer) => {
      answer.resume()
      answer.once('end', () => resolve(String(answer.headers['audit-id'])))
    })
    asked.once('error', reject)
    asked.end('{}')
  })
}

async function audited(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'kubectl-audit-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const [path, registry, log] = [join(folder, 'audit.log'), metricsRegistry(), quietLog(t)]
  const file = auditFile({ settings: { path, maxSize: 10, maxBackup: 1, maxAge: 1 }, clock, registry, log })
  const api = await startApi({ log, over: { audit: auditLog({ file, clock, registry }) } })
  t.teardown(api.stop)
  return {
    api,
    async lines() {
      await file.close()
      const text = await readFile(path, 'utf8')
      return {
        text,
        events: text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line)),
      }
    },
  }
}
