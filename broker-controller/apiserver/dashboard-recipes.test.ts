/** The recipes of docs/dashboards.md: their manifests and commands as they stand there, and what their tokens may do. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { parse } from 'yaml'
import { administrator } from '../../api/identity.ts'
import { aNode, aPod } from '../../api/testing/builders.ts'
import { systemClock } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { readKubeconfig } from '../commands/connection/kubeconfig.ts'
import { aggregatedRules } from '../controllers/accounts-and-roles/role-aggregation-controller.ts'
import { ensureDefaultRoles } from '../default-roles/reconcile-roles.ts'
import { type ApiUnderTest, startApi } from '../testing/api-under-test.ts'
import { type ClientRequest, headlamp, homepage, k9s, lens } from './testing/client-steps.ts'

const document = readFileSync(fileURLToPath(new URL('../../../docs/dashboards.md', import.meta.url)), 'utf8')
const section = document.slice(document.indexOf('## Other dashboards'))

/** The first block of this language that contains the text. */
function blockWith(language: string, content: string): string {
  const blocks = [...section.matchAll(/```(\w+)\n([\s\S]*?)```/g)]
  const found = blocks.find(([, name, block = '']) => name === language && block.includes(content))?.[2]
  if (found === undefined) throw new Error(`docs/dashboards.md has no ${language} block with ${content}`)
  return found
}

async function anApi(t: Test) {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  await ensureDefaultRoles({ store: api.store, clock: systemClock })
  const { items } = await api.store.list('clusterroles')
  for (const role of items) {
    const rules = aggregatedRules(role, items)
    if (rules !== undefined) await api.store.update('clusterroles', { ...role, rules })
  }
  await api.store.create('nodes', aNode({ name: 'pi-1', ready: 'True' }))
  await api.store.create('pods', aPod({ name: 'web', nodeName: 'pi-1' }))
  await api.store.create('configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'kube-system', name: 'kube-root-ca.crt' },
    data: { 'ca.crt': api.authority.certificate },
  })
  return api
}

/** Runs commands of the document in a folder with the manifest that they apply; gives their output. */
async function followed(api: ApiUnderTest, manifest: string, commands: string): Promise<string> {
  const name = /apply -f (\S+)/.exec(commands)?.[1] ?? 'none'
  await writeFile(join(api.folder, name), manifest)
  const env = {
    PATH: process.env['PATH'],
    HOME: api.folder,
    KUBECONFIG: await api.kubeconfigFor('operator', api.issueFor(administrator)),
  }
  const script = commands.replaceAll('https://controller:6443', api.url)
  return (await promisify(execFile)('sh', ['-euc', script], { cwd: api.folder, env })).stdout
}

type Answer = { readonly code: number | undefined; readonly body: string }

function sender(api: ApiUnderTest, token: string) {
  return ({ path, accept = 'application/json', body, method }: ClientRequest & { readonly method?: string }) =>
    new Promise<Answer>((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        accept,
        ...(body && { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' }),
      }
      const options = {
        ca: api.authority.certificate,
        headers,
        agent: false,
        method: method ?? (body ? 'POST' : 'GET'),
      }
      const sent = request(api.url + path, options, (answer) =>
        text(answer).then((all) => resolve({ code: answer.statusCode, body: all }), reject),
      )
      sent.on('error', reject)
      sent.end(body && JSON.stringify(body))
    })
}

const writes = [
  { method: 'POST', path: '/api/v1/namespaces/default/pods', body: {} },
  { method: 'DELETE', path: '/api/v1/namespaces/default/pods/web' },
  { method: 'POST', path: '/api/v1/namespaces/default/pods/web/eviction', body: {} },
  { method: 'PATCH', path: '/api/v1/nodes/pi-1', body: { spec: { unschedulable: true } } },
  { method: 'DELETE', path: '/api/v1/nodes/pi-1' },
  { method: 'PATCH', path: '/apis/apps/v1/namespaces/default/deployments/web/scale', body: { spec: { replicas: 0 } } },
  { method: 'POST', path: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', body: {} },
  { method: 'POST', path: '/api/v1/namespaces/kube-system/serviceaccounts/fleet-reader/token', body: {} },
]
/** Reading these is as good as writing. */
const secrets = [
  { path: '/api/v1/secrets' },
  { path: '/api/v1/namespaces/default/pods/web/exec?command=sh' },
  { path: '/api/v1/nodes/pi-1/proxy/pods' },
]

test('the account for Headlamp, k9s, Freelens and Homepage reads what they ask for, and writes nothing', async (t) => {
  const api = await anApi(t)
  const commands = blockWith('sh', 'kubectl apply -f fleet-reader.yaml')
  await followed(api, blockWith('yaml', 'name: fleet-reader,'), commands)
  const { token = '', url, ca } = await readKubeconfig(join(api.folder, 'fleet-reader.kubeconfig'))
  t.match({ url, ca }, { url: api.url, ca: (await readFile(join(api.folder, 'ca.crt'), 'utf8')).trim() })
  const send = sender(api, token)
  for (const [client, steps] of Object.entries({ headlamp, k9s, lens, homepage })) {
    await t.test(client, async (t) => {
      for (const [sent, expected] of steps) {
        const wanted = 'code' in expected ? expected.code : 200
        const { code, body } = await send(sent)
        t.equal(code, wanted, `${sent.path} ${code === wanted ? '' : body}`)
      }
    })
  }
  for (const sent of [...writes, ...secrets]) t.equal((await send(sent)).code, 403, `${sent.path} is refused`)
})

test('the account for a widget and a monitor reads the summary, and nothing else', async (t) => {
  const api = await anApi(t)
  const commands = blockWith('sh', 'kubectl apply -f fleet-summary.yaml')
  const output = await followed(api, blockWith('yaml', 'name: fleet-summary,'), commands)
  const send = sender(api, output.trim().split('\n').at(-1) ?? '')
  const { code, body } = await send({ path: '/fleet/summary' })
  t.equal(code, 200)
  const keyword = /keyword `([^`]+)`/.exec(section)?.[1]
  t.ok(keyword !== undefined && body.includes(keyword), `Uptime Kuma finds ${keyword} in ${body}`)
  const [home] = parse(blockWith('yaml', 'type: customapi'))
  const { url, mappings } = home.Home[0].Fleet.widget
  t.equal(url, 'https://controller:6443/fleet/summary')
  for (const { field } of mappings) t.type(JSON.parse(body)[field], 'number', `${field} is in the summary`)
  t.equal((await send({ path: '/fleet/badge.svg' })).code, 200)
  t.equal((await send({ path: '/readyz' })).code, 200)
  for (const path of ['/api/v1/nodes', '/api/v1/pods', '/metrics', '/fleet/http_sd'])
    t.equal((await send({ path })).code, 403, `${path} is refused`)
  for (const sent of writes) t.equal((await send(sent)).code, 403, `${sent.path} is refused`)
})
