/** The proxy of `docs/proxy.yaml`, an unmodified HAProxy: from a machine on the link to pods on two nodes. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { parseAllDocuments } from 'yaml'
import { skipWithout } from './support/missing-parts.ts'
import { image } from './support/pods.ts'
import { routedMachines, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

const haproxy = '/usr/sbin/haproxy'
/** The proxy of this machine, with its libraries: no image of it can be pulled here. */
const folders = ['/usr', '/lib', '/lib64']

/** It answers with its name, and is ready while it has the file `ready`. */
const script = 'mkdir -p /www && hostname > /www/index.html && touch /www/ready && exec httpd -f -p 8080 -h /www'
const web = (name: string, nodeName: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: 'web' } },
  spec: {
    nodeName,
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'main',
        image,
        command: ['sh', '-c', script],
        ports: [{ name: 'http', containerPort: 8080 }],
        readinessProbe: { httpGet: { path: '/ready', port: 'http' }, periodSeconds: 1, timeoutSeconds: 10 },
      },
    ],
  },
})
const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web' },
  spec: { clusterIP: 'None', selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
}

type Manifest = { readonly kind: string; readonly spec: { readonly template: { readonly spec: PodSpec } } }
type PodSpec = {
  readonly containers: readonly [{ readonly command: readonly string[]; readonly volumeMounts: readonly object[] }]
  readonly volumes: readonly object[]
}

/** As the file has it, with the proxy of this machine. */
async function manifests(): Promise<readonly unknown[]> {
  const text = await readFile(new URL('../../docs/proxy.yaml', import.meta.url), 'utf8')
  return parseAllDocuments(text).map((document) => {
    const object = document.toJS() as Manifest
    if (object.kind !== 'DaemonSet') return object
    const { template } = object.spec
    const { containers, volumes } = template.spec
    const [container] = containers
    const mounts = folders.map((mountPath, index) => ({ name: `folder-${index}`, mountPath, readOnly: true }))
    const own = {
      ...container,
      image,
      command: [haproxy, ...container.command.slice(1)],
      volumeMounts: [...container.volumeMounts, ...mounts],
    }
    const more = folders.map((path, index) => ({ name: `folder-${index}`, hostPath: { path } }))
    const spec = {
      ...template.spec,
      containers: [own],
      volumes: [...volumes, ...more],
      terminationGracePeriodSeconds: 0,
    }
    return { ...object, spec: { ...object.spec, template: { ...template, spec } } }
  })
}

test('an unmodified proxy leads pages to the ready pods of a Service', {
  skip: whyNoRoutedMachines() || skipWithout('haproxy', existsSync(haproxy)),
}, async (t) => {
  const { controller, first, second, stranger } = await routedMachines(t)
  const { kubectl, kubectlWith } = controller
  await first.startAgent()
  await second.startAgent()
  await controller.nodesReady('pi-1', 'pi-2')
  const objects = [service, web('one', 'pi-1'), web('two', 'pi-2'), ...(await manifests())]
  for (const object of objects) await kubectlWith(JSON.stringify(object), 'create', '-f', '-')
  await kubectl('wait', '--for=condition=Ready', 'pod/one', 'pod/two', '--timeout=120s')
  await kubectl('rollout', 'status', 'daemonset/proxy', '--timeout=120s')

  /** What some requests from another machine to port 80 of a node are answered. */
  const pages = async (address: string, host = 'web.example') => {
    const ask = `
      const ask = () => new Promise((resolve) => require('http')
        .get({ host: '${address}', port: 80, headers: { host: '${host}' }, agent: false, timeout: 5000 }, (answer) => {
          let text = ''
          answer.on('data', (data) => { text += data })
          answer.on('end', () => resolve(answer.statusCode === 200 ? text.trim() : answer.statusCode))
        })
        .on('error', ({ code }) => resolve(code)))
      ;(async () => { for (let count = 0; count < 8; count++) console.log(await ask()) })()`
    const printed = await stranger.run(process.execPath, '-e', ask)
    return [...new Set(printed.trim().split('\n'))].sort().join(' ')
  }
  for (const { address } of [first, second]) {
    await eventually('both pods answer', async () => (await pages(address)) === 'one two')
  }
  t.equal(await pages(first.address, 'other.example'), '503')
  await kubectl('exec', 'one', '--', 'rm', '/www/ready')
  for (const { address } of [first, second]) {
    await eventually('only the ready pod answers', async () => (await pages(address)) === 'two')
  }
  await kubectl('exec', 'one', '--', 'touch', '/www/ready')
  await eventually('both answer again', async () => (await pages(second.address)) === 'one two')
})
