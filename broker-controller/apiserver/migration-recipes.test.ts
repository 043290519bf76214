/** The sections of docs/recipes.md about Compose and k3s: their manifests and commands as they stand there. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { parseAllDocuments, stringify } from 'yaml'
import { administrator } from '../../api/identity.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { skipWithout } from '../../test/support/missing-parts.ts'
import { type ApiUnderTest, startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

const document = readFileSync(fileURLToPath(new URL('../../../docs/recipes.md', import.meta.url)), 'utf8')
const section = document.slice(document.indexOf('## Migrating from Compose'))
const manifests = blocks('yaml')
const skip = whyNoKubectl() || skipWithout('jq', existsSync('/usr/bin/jq'))

function blocks(language: string): readonly string[] {
  return [...section.matchAll(/```(\w+)\n([\s\S]*?)```/g)].flatMap(([, name, block = '']) =>
    name === language ? [block] : [],
  )
}

async function anApi(t: Test): Promise<ApiUnderTest> {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  return api
}

test('the manifests are accepted as they are', { skip }, async (t) => {
  const { kubectl } = await anApi(t)
  t.equal(manifests.length, 3)
  for (const [place, input] of manifests.entries()) {
    const names = parseAllDocuments(input).map((one) => `${one.get('kind')}`)
    // Two of them have the same name.
    const namespace = `of-${place}`
    await kubectl(['create', 'namespace', namespace])
    const { code, stderr } = await kubectl(['--namespace', namespace, 'create', '-f', '-'], { input })
    t.equal(code, 0, `${names.join(', ')} ${stderr}`)
    t.equal(stderr, '', 'without a warning')
  }
})

test('a StatefulSet with claims is accepted, and so is a template with a claim', { skip }, async (t) => {
  const { kubectl } = await anApi(t)
  const [deployment = '', , set = ''] = manifests
  const withClaims = parseAllDocuments(set)[0]
  withClaims?.setIn(['spec', 'volumeClaimTemplates'], [{ metadata: { name: 'data' } }])
  const withClaim = parseAllDocuments(deployment)[0]
  const volume = { name: 'data', persistentVolumeClaim: { claimName: 'db' } }
  withClaim?.setIn(['spec', 'template', 'spec', 'volumes'], [volume])
  t.match(await kubectl(['create', '-f', '-'], { input: String(withClaims) }), { code: 0 })
  t.match(await kubectl(['create', '-f', '-'], { input: String(withClaim) }), { code: 0 })
})

const template = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'web', image: 'web:1', envFrom: [{ configMapRef: { name: 'web' } }] }] },
}
const selector = { matchLabels: { app: 'web' } }
const port = { port: 80, protocol: 'TCP' }
const backend = { service: { name: 'web', port: { number: 80 } } }
const job = { spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } } }

/** A namespace as k3s has it. */
const copied = [
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web' }, data: { a: 'b' } },
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'web' }, type: 'Opaque', stringData: { a: 'b' } },
  { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec: { selector: { app: 'web' }, ports: [port] } },
  { apiVersion: 'v1', kind: 'Service', metadata: { name: 'db' }, spec: { clusterIP: 'None', ports: [port] } },
  { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec: { replicas: 2, selector, template } },
  {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db' },
    spec: { serviceName: 'db', selector, template },
  },
  { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'all' }, spec: { selector, template } },
  {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'tick' },
    spec: { schedule: '* * * * *', timeZone: 'Etc/UTC', jobTemplate: job },
  },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name: 'web' },
    spec: { ingressClassName: 'traefik', defaultBackend: backend },
  },
]
/** What its own cluster makes there. */
const left = [
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kube-root-ca.crt' }, data: {} },
  {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'token', annotations: { 'kubernetes.io/service-account.name': 'default' } },
    type: 'kubernetes.io/service-account-token',
  },
]

test('the commands copy a namespace of k3s', { skip }, async (t) => {
  const [k3s, bramble] = [await anApi(t), await anApi(t)]
  await k3s.kubectl(['create', 'namespace', 'shop'])
  const input = [...copied, ...left].map((object) => stringify(object)).join('---\n')
  const { code, stderr } = await k3s.kubectl(['--namespace', 'shop', 'create', '-f', '-'], { input })
  t.equal(code, 0, stderr)
  await k3s.store.update('services', await withAddress(k3s, '10.43.0.9'))

  await followed(k3s, bramble, blocks('sh').join('\n'))

  const kinds = 'configmaps,secrets,services,deployments,statefulsets,daemonsets,cronjobs,ingresses'
  const { stdout } = await bramble.kubectl(['--namespace', 'shop', 'get', kinds, '-o', 'json'])
  const { items } = JSON.parse(stdout)
  const names = (objects: typeof copied) => objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()
  t.same(names(items), names(copied))
  const found = (kind: string, name: string) =>
    items.find((one: (typeof copied)[number]) => one.kind === kind && one.metadata.name === name).spec
  t.match(found('Service', 'web'), { clusterIP: /^10\.(9[6-9]|10\d|11[01])\./, ports: [port] })
  t.equal(found('Service', 'db').clusterIP, 'None')
  t.match(found('Deployment', 'web'), { replicas: 2, selector, template })
  t.match(found('Ingress', 'web'), { ingressClassName: 'bramble', defaultBackend: backend })
})

async function withAddress(api: ApiUnderTest, clusterIP: string) {
  const service = await api.store.get('services', { namespace: 'shop', name: 'web' })
  if (service === undefined) throw new Error('There is no Service')
  return { ...service, spec: { ...service.spec, clusterIP, clusterIPs: [clusterIP] } }
}

/** Runs commands of the document, with a context for each of the two. */
async function followed(k3s: ApiUnderTest, bramble: ApiUnderTest, commands: string): Promise<void> {
  const there = await k3s.kubeconfigFor('k3s', k3s.issueFor(administrator))
  const here = await bramble.kubeconfigFor('bramble', bramble.issueFor(administrator))
  const text = await readFile(there, 'utf8')
  await writeFile(there, text.replaceAll('kubernetes-admin', 'k3s-admin').replace(/\bbramble\b/g, 'k3s'))
  const env = { PATH: process.env['PATH'], HOME: bramble.folder, KUBECONFIG: `${here}:${there}` }
  await promisify(execFile)('sh', ['-euc', commands], { cwd: bramble.folder, env })
}
