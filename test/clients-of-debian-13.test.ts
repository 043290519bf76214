/** Clients that people have, unmodified, against a fleet on Docker: those of Debian 13, in a root of it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { freePort } from '../agent/testing/free-port.ts'
import { clientRoot, whyNoClientRoot } from './support/client-root.ts'
import type { Controller } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { commandOrThrow } from './support/machine-commands.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const scripts = fileURLToPath(new URL('../../test/clients/', import.meta.url))

test('clients of Debian 13 work unmodified', { skip: whyNoClientRoot() }, async (t) => {
  const root = await clientRoot()
  const fleet = await joinedFleet(t, { isReachable: true })
  await fleet.startReady()
  const { controller } = fleet
  const folder = await mkdtemp(join(root, 'tmp/clients-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const inRoot = join('/tmp', basename(folder))

  await t.test('client-go in a pod: informers, streams, apply, leader election', async (t) => {
    const run = async (name: string, env: readonly { readonly name: string; readonly value: string }[]) => {
      t.match(await goProgram(controller, { root, name, env }), /^end$/m, name)
    }
    await run('go', [])
    // The default of later versions: a list is a watch that begins with the objects.
    await run('go-watch-list', [{ name: 'KUBE_FEATURE_WatchListClient', value: 'true' }])
  })

  await t.test('pykube-ng', async (t) => {
    await copyFile(controller.kubeconfig, join(folder, 'kubeconfig'))
    await copyFile(join(scripts, 'pykube_client.py'), join(folder, 'client.py'))
    const args = ['/usr/bin/python3', join(inRoot, 'client.py'), join(inRoot, 'kubeconfig'), image]
    const steps = await commandOrThrow('chroot', [root, ...args], { withinMs: 240_000 })
    t.equal(steps.trim().split('\n').at(-1), 'delete')
  })

  await t.test('Prometheus finds nodes, pods and endpoints', (t) => prometheus(t, controller, { root, folder, inRoot }))
})

type GoProgram = {
  readonly root: string
  /** Name of its namespace and its account. */
  readonly name: string
  readonly env: readonly { readonly name: string; readonly value: string }[]
}

/** What the program prints in a pod, to its end. Its account has the role `admin` in a namespace. */
async function goProgram({ kubectl, kubectlWith }: Controller, { root, name, env }: GoProgram): Promise<string> {
  await kubectl('create', 'namespace', name)
  await kubectl('create', 'serviceaccount', 'client', '-n', name)
  await kubectl('create', 'rolebinding', 'client', '--clusterrole=admin', `--serviceaccount=${name}:client`, '-n', name)
  const client = {
    name: 'main',
    image,
    command: ['/clients/go-client', name, image],
    env,
    volumeMounts: [{ name: 'clients', mountPath: '/clients', readOnly: true }],
  }
  const spec = {
    serviceAccountName: 'client',
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 0,
    containers: [client],
    volumes: [{ name: 'clients', hostPath: { path: join(root, 'opt/clients'), type: 'Directory' } }],
  }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'client', namespace: name }, spec }
  await kubectlWith(JSON.stringify(pod), 'create', '-f', '-')
  const phase = () => kubectl('get', 'pod', 'client', '-n', name, '-o', 'jsonpath={.status.phase}')
  await eventually(`${name} has ended`, async () => ['Succeeded', 'Failed'].includes(await phase()), {
    withinMs: 300_000,
  })
  return kubectl('logs', '-n', name, 'client')
}

type Target = { readonly scrapePool: string; readonly discoveredLabels: Readonly<Record<string, string>> }
type Folders = { readonly root: string; readonly folder: string; readonly inRoot: string }

/** With the rights and the jobs of docs/metrics.md, and the usual ones for pods and endpoints. */
async function prometheus(t: Test, { kubectl, kubectlWith, apiUrl }: Controller, folders: Folders): Promise<void> {
  const { root, folder, inRoot } = folders
  await kubectl('create', 'serviceaccount', 'prometheus')
  const bind = async (name: string, ...rules: readonly string[]) => {
    if (rules.length > 0) await kubectl('create', 'clusterrole', name, ...rules)
    await kubectl('create', 'clusterrolebinding', `prometheus-${name}`, ...bound(name))
  }
  const bound = (role: string) => [`--clusterrole=${role}`, '--serviceaccount=default:prometheus']
  const found = 'nodes,pods,services,endpoints,endpointslices.discovery.k8s.io'
  await bind('discovery', '--verb=get,list,watch', `--resource=${found}`)
  await bind('proxy', '--verb=get', '--resource=nodes/proxy')
  await bind('system:monitoring')
  const served = `mkdir /www; echo 'from_a_pod 7' > /www/metrics; exec httpd -f -p 8080 -h /www`
  const container = { name: 'main', image, command: ['sh', '-c', served], ports: [{ containerPort: 8080 }] }
  const metadata = { name: 'exporter', annotations: { 'prometheus.io/scrape': 'true' } }
  const exporter = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [container] } }
  await kubectlWith(JSON.stringify(exporter), 'create', '-f', '-')
  const data = ['config', 'view', '--raw', '-o', 'jsonpath={.clusters[0].cluster.certificate-authority-data}']
  await writeFile(join(folder, 'ca.crt'), Buffer.from(await kubectl(...data), 'base64'))
  await writeFile(join(folder, 'token'), (await kubectl('create', 'token', 'prometheus')).trim())
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify({ scrape_configs: jobs(apiUrl) })) // JSON is YAML

  const port = await freePort()
  const options = [`--storage.tsdb.path=${inRoot}/tsdb`, `--web.listen-address=127.0.0.1:${port}`]
  const command = ['prometheus', `--config.file=${inRoot}/prometheus.yml`, ...options]
  const child = spawn('chroot', [root, ...command], { stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (piece: Buffer) => {
    errors += piece.toString()
  })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const result = async (text: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(text)}`)
    const { data } = (await answer.json()) as { data: { result: { metric: object; value: [number, string] }[] } }
    return data.result
  }
  const targets = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/targets?state=active`)
    const { data } = (await answer.json()) as { data: { activeTargets: readonly Target[] } }
    return data.activeTargets
  }
  const until = (text: string) =>
    eventually(text, async () => {
      const rows = await result(text).catch(() => [])
      return rows.length > 0 && rows
    }).catch(async (error: Error) => {
      throw new Error(`${error.message}: ${errors}${JSON.stringify(await targets())}`, { cause: error })
    })
  const { host } = new URL(apiUrl)
  t.match(await until('up{job="nodes"} == 1'), [{ metric: { node: 'pi-1' } }])
  t.match(await until('container_memory_working_set_bytes{id="/",node="pi-1"} > 0'), [{ metric: { job: 'nodes' } }])
  const fromPod = await until('from_a_pod == 7')
  const podIP = await kubectl('get', 'pod', 'exporter', '-o', 'jsonpath={.status.podIP}')
  t.match(fromPod, [{ metric: { pod: 'exporter', instance: `${podIP}:8080` } }])
  for (const job of ['endpoints', 'endpointslices']) {
    t.match(await until(`apiserver_request_total{job="${job}"}`), [{ metric: { instance: host } }], job)
  }
  const labels = (await targets()).find(({ scrapePool }) => scrapePool === 'nodes')?.discoveredLabels ?? {}
  const address = (await kubectl('get', 'node', 'pi-1', '-o', 'jsonpath={.status.addresses[0].address}')).trim()
  t.equal(labels['__meta_kubernetes_node_address_InternalIP'], address)
  t.equal(labels['__address__']?.split(':')[0], address)
}

function jobs(apiUrl: string): readonly object[] {
  const access = { tls_config: { ca_file: 'ca.crt' }, authorization: { credentials_file: 'token' } }
  const job = (name: string, role: string, more: object) => ({
    job_name: name,
    scrape_interval: '1s',
    kubernetes_sd_configs: [{ role, api_server: apiUrl, ...access }],
    ...more,
  })
  const nodeName = { source_labels: ['__meta_kubernetes_node_name'] }
  const path = { target_label: '__metrics_path__', replacement: '/api/v1/nodes/$1/proxy/metrics/cadvisor' }
  const keep = (regex: string, ...labels: readonly string[]) => ({
    source_labels: labels.map((label) => `__meta_kubernetes_${label}`),
    action: 'keep',
    regex,
  })
  const nodes = [
    { target_label: '__address__', replacement: new URL(apiUrl).host },
    { ...nodeName, target_label: 'node' },
    { ...nodeName, ...path },
  ]
  const pods = [
    keep('true', 'pod_annotation_prometheus_io_scrape'),
    { source_labels: ['__meta_kubernetes_pod_name'], target_label: 'pod' },
  ]
  const endpoints = [keep('default;kubernetes;https', 'namespace', 'service_name', 'endpoint_port_name')]
  const slices = [keep('default;kubernetes;https', 'namespace', 'service_name', 'endpointslice_port_name')]
  return [
    job('nodes', 'node', { scheme: 'https', ...access, relabel_configs: nodes }),
    job('pods', 'pod', { relabel_configs: pods }),
    job('endpoints', 'endpoints', { scheme: 'https', ...access, relabel_configs: endpoints }),
    job('endpointslices', 'endpointslice', { scheme: 'https', ...access, relabel_configs: slices }),
  ]
}
