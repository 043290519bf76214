/**
 * @kubernetes/client-node and kubernetes-fluent-client against a fleet: node-client.mjs IMAGE, with KUBECONFIG. Prints a line for each step. At
 * `restart the controller` it waits for a line on its standard input.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import {
  CoreV1Api,
  Exec,
  KubeConfig,
  Log,
  makeInformer,
  PatchStrategy,
  PortForward,
  setHeaderOptions,
} from '@kubernetes/client-node'

const [image] = process.argv.slice(2)
const config = new KubeConfig()
config.loadFromDefault()
const core = config.makeApiClient(CoreV1Api)
const namespace = 'javascript'
const step = (name) => console.log(name)

function pod(name) {
  const command = ['sh', '-c', 'echo started; exec nc -ll -p 8080 -e cat']
  return {
    metadata: { name, labels: { app: name } },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image, command }] },
  }
}

async function until(what, condition) {
  for (const start = Date.now(); Date.now() - start < 90_000; await delay(200)) if (await condition()) return
  throw new Error(`Not within 90 s: ${what}`)
}

await core.createNamespace({ body: { metadata: { name: namespace } } })
const list = () => core.listNamespacedPod({ namespace })
const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/pods`, list)
const phases = new Map()
const gone = new Set()
informer.on('add', ({ metadata, status }) => void phases.set(metadata.name, status.phase))
informer.on('update', ({ metadata, status }) => void phases.set(metadata.name, status.phase))
informer.on('delete', ({ metadata }) => void gone.add(metadata.name))
informer.on('error', () => setTimeout(() => informer.start().catch(() => undefined), 500))
await informer.start()
const created = await core.createNamespacedPod({ namespace, body: pod('first') })
assert.equal(created.status.phase, 'Pending')
await until('the pod runs', () => phases.get('first') === 'Running')
step('typed create, informer')

// A container runs a moment before it prints.
await until('the log of the pod', async () => {
  const lines = new PassThrough()
  await new Log(config).log(namespace, 'first', 'main', lines, { follow: false })
  const log = await text(lines)
  assert.ok('started\n'.startsWith(log), log)
  return log === 'started\n'
})
step('log')

const output = new PassThrough()
const status = await new Promise((resolve, reject) => {
  const input = new PassThrough()
  new Exec(config)
    .exec(
      namespace,
      'first',
      'main',
      ['sh', '-c', 'read line; echo "got $line"; exit 3'],
      output,
      null,
      input,
      false,
      resolve,
    )
    .then(() => input.write('this\n'), reject)
})
output.end()
assert.equal(await text(output), 'got this\n')
assert.equal(status.details.causes[0].message, '3')
step('exec')

const forward = new PortForward(config)
const server = createServer((socket) => {
  forward.portForward(namespace, 'first', [8080], socket, null, socket).catch((error) => socket.destroy(error))
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const socket = connect(server.address().port, '127.0.0.1')
socket.write('through the port\n')
const [answer] = await once(socket, 'data')
assert.equal(answer.toString(), 'through the port\n')
socket.destroy()
server.close()
step('port-forward')

const applied = await core.patchNamespacedConfigMap(
  {
    namespace,
    name: 'applied',
    fieldManager: 'javascript',
    force: true,
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, data: { a: '1' } },
  },
  setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply),
)
assert.deepEqual(applied.data, { a: '1' })
assert.deepEqual(
  applied.metadata.managedFields.map(({ manager, operation }) => [manager, operation]),
  [['javascript', 'Apply']],
)
step('server-side apply')

step('restart the controller')
await once(process.stdin, 'data')
await until('the API answers again', () =>
  list().then(
    () => true,
    () => false,
  ),
)
await core.createNamespacedPod({ namespace, body: pod('second') })
await until('the informer sees a pod created after the restart', () => phases.get('second') === 'Running')
await core.deleteNamespacedPod({ namespace, name: 'first' })
await until('the informer sees its deletion', () => gone.has('first'))
await informer.stop()
step('informer over a restart')

await core.deleteNamespace({ name: namespace })
process.exit(0)
