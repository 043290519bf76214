/** Clients with a user interface at their start: Headlamp, k9s, Lens (Freelens) and Homepage. */
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { test } from 'tap'
import { administrator } from '../../api/identity.ts'
import { aNode, aPod } from '../../api/testing/builders.ts'
import { systemClock } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { ensureDefaultRoles } from '../default-roles/reconcile-roles.ts'
import { startApi } from '../testing/api-under-test.ts'
import { type ClientRequest, headlamp, homepage, k9s, lens } from './testing/client-steps.ts'

type Answer = { readonly code: number | undefined; readonly type: string; readonly body: unknown }

const json = 'application/json'

test('clients with a user interface get what they read at their start', async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  await ensureDefaultRoles({ store: api.store, clock: systemClock })
  const { certificate, key } = api.issueFor(administrator)
  const send = ({ path, accept = json, body, as }: ClientRequest) =>
    new Promise<Answer>((resolve, reject) => {
      const method = body === undefined ? 'GET' : 'POST'
      const headers = { accept, ...(body && { 'content-type': json }) }
      const tls = { ca: api.authority.certificate, cert: certificate, key }
      const sent = request(api.url + path, { ...tls, method, headers, agent: false }, (answer) => {
        const type = answer.headers['content-type'] ?? ''
        const decoded = text(answer).then((all) => (as === 'text' ? all : JSON.parse(all)))
        decoded.then((all: unknown) => resolve({ code: answer.statusCode, type, body: all }), reject)
      })
      sent.on('error', reject)
      sent.end(body && JSON.stringify(body))
    })
  const node = aNode({ name: 'pi-1' })
  const status = {
    capacity: { cpu: '4', memory: '4Gi', pods: '110' },
    conditions: [{ type: 'Ready', status: 'True' as const }],
  }
  await api.store.create('nodes', { ...node, metadata: { name: 'pi-1' }, status })
  const pod = aPod({ name: 'web', nodeName: 'pi-1' })
  const metadata = { name: 'web', namespace: 'default', labels: { 'app.kubernetes.io/name': 'web' } }
  const spec = { ...pod.spec, containers: [{ name: 'main', image: 'image:1' }] }
  await api.store.create('pods', { ...pod, metadata, spec, status: { phase: 'Running' } })

  for (const [client, steps] of Object.entries({ headlamp, k9s, lens, homepage })) {
    await t.test(client, async (t) => {
      for (const [sent, expected] of steps) {
        const answer = await send(sent)
        const type = sent.as === 'text' ? String : /^application\/json/
        t.match(readable(answer, expected), { code: 200, type, ...expected }, `${sent.path} ${sent.accept ?? ''}`)
      }
    })
  }
})

/** Compares JSON text where a pattern is expected of an object or a list. */
function readable(found: unknown, expected: unknown): unknown {
  if (expected instanceof RegExp && typeof found !== 'string') return JSON.stringify(found)
  if (!isObject(found) || !isObject(expected)) return found
  const entries = Object.entries(found).map(([name, value]) => [name, readable(value, expected[name])] as const)
  return Array.isArray(found) ? entries.map(([, value]) => value) : Object.fromEntries(entries)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
