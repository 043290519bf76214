/** Mosquitto in front of a fleet, set up as control-plane.md describes it. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import mqtt from 'mqtt'
import { test } from 'tap'
import { freePort } from '../agent/testing/free-port.ts'
import { noMosquitto } from '../agent/testing/mosquitto.ts'
import { openAuthority } from '../certs/authority.ts'
import { issueNode } from '../certs/issue.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { noEtcd } from './support/etcd.ts'
import { type Controller, joinFleet, startAgent, startController, temporaryFolder } from './support/fleet.ts'
import { podManifest } from './support/manifests.ts'
import { mosquittoProcess } from './support/mosquitto-server.ts'
import { image, listening } from './support/pods.ts'
import { startProgram } from './support/program.ts'
import { startReplicas } from './support/replicas.ts'
import { eventually } from './support/wait.ts'

const run = promisify(execFile)
const command = fileURLToPath(new URL('../../scripts/bramble-controller', import.meta.url))

/** The commands of the page, in their order. */
async function commandsOf(section: string): Promise<readonly string[]> {
  const page = await readFile(fileURLToPath(new URL('../../docs/control-plane.md', import.meta.url)), 'utf8')
  const [, block = ''] = page.slice(page.indexOf(`## ${section}`)).split('```', 2)
  return block
    .split('\n')
    .slice(1)
    .filter((line) => line !== '')
}

/** After two short connections an agent waits for up to 4 s, and for up to 8 s where that was too early. The controller tries more often. */
const longestSeconds = 15

function isConnected({ message }: { readonly message: string }): boolean {
  return message === 'Connected to the control plane'
}

type NodeConnection = {
  readonly host: string
  readonly port: number
  /** Data directory of the controller, whose authority issues the certificate. */
  readonly dataDir: string
  readonly nodeName: string
}

/** Whether a node that connects now is sent its pods, and which controller leads, by Mosquitto itself. */
async function retainedFor({ host, port, dataDir, nodeName }: NodeConnection): Promise<boolean> {
  const authority = await openAuthority(join(dataDir, 'authority'), Date.now())
  const { certificate, key } = issueNode(authority, { nodeName, nowMs: Date.now() })
  const settings = { host, port, ca: authority.certificate, cert: certificate, key, reconnectPeriod: 0 }
  const client = await mqtt
    .connectAsync({ protocol: 'mqtts', protocolVersion: 4, connectTimeout: 5_000, ...settings })
    .catch(() => undefined)
  if (client === undefined) return false
  const wanted = new Set(['bramble/v1/controller', `bramble/v1/nodes/${nodeName}/desired`])
  const missing = new Set(wanted)
  client.on('message', (topic, body, { retain }) => {
    if (retain && body.length > 0) missing.delete(topic)
  })
  try {
    await client.subscribeAsync([...wanted], { qos: 1 })
    // They follow the answer to the subscription.
    await eventually('', () => missing.size === 0, { withinMs: 500 }).catch(() => undefined)
    return missing.size === 0
  } finally {
    await client.endAsync(true)
  }
}

async function connectedMetric(controller: Controller): Promise<boolean> {
  return (await controller.kubectl('get', '--raw', '/metrics')).includes('\nbramble_broker_external_connected 1')
}

test('a fleet moves to Mosquitto, and goes on through restarts of it', {
  skip: noMosquitto || whyNoDockerd(),
  timeout: 300_000,
}, async (t) => {
  const folder = await temporaryFolder(t)
  const docker = await startDockerd(t)
  await docker.importImage(image)
  const dataDir = join(folder, 'controller')
  const mqttPort = await freePort()
  const before = await startController(t, { dataDir, mqttPort })
  const address = new URL(before.apiUrl).hostname
  const apiPort = Number(new URL(before.apiUrl).port)
  await joinFleet(before, 'pi-1', join(folder, 'pi-1'))
  const agent = await startAgent(t, { dataDir: join(folder, 'pi-1'), dockerSocket: docker.socket })
  await before.nodesReady('pi-1')
  await before.kubectlWith(aPod('web', 'pi-1'), 'apply', '-f', '-')
  const running = (controller: Controller, name: string) =>
    eventually(`${name} runs`, async () => {
      const phase = await controller.kubectl('get', 'pod', name, '-o', 'jsonpath={.status.phase}')
      return phase === 'Running'
    })
  await running(before, 'web')
  const restarts = ['get', 'pod', 'web', '-o', 'jsonpath={.metadata.uid} {.status.containerStatuses[0].containerID}']
  const same = await before.kubectl(...restarts)

  const lines = await commandsOf('Mosquitto in front')
  const [install, link, setting, copying, service] = [2, 3, 4, 6, 8].map((number) => lines[number] ?? '')
  t.same(
    lines.filter((_, i) => ![2, 3, 4, 6, 8].includes(i)),
    [
      'apt-get install --no-install-recommends mosquitto',
      'systemctl stop mosquitto',
      'systemctl restart bramble-controller',
      'install -D -m 644 /usr/share/doc/bramble-controller/examples/mosquitto-sessions.conf /etc/systemd/system/mosquitto.service.d/bramble.conf',
      'systemctl daemon-reload',
      'systemctl start mosquitto',
      'systemctl enable --now bramble-mosquitto',
    ],
  )
  const etc = join(folder, 'etc')
  await mkdir(join(etc, 'mosquitto/conf.d'), { recursive: true })
  await mkdir(join(etc, 'bramble'))
  const here = (line: string) =>
    line.replaceAll('/etc/', `${etc}/`).replace(/mqtts:\/\/10\.0\.0\.1:8883/, `mqtts://${address}:${mqttPort}`)
  const config = join(etc, 'bramble/controller.yaml')
  const json = JSON.parse(await readFile(`${dataDir}.yaml`, 'utf8'))
  await writeFile(
    config,
    Object.entries(json)
      .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
      .join(''),
  )
  for (const line of [install, link, setting]) await run('sh', ['-ec', here(line ?? '')])
  await before.program.stop()
  const after = await startController(t, { dataDir, config, apiPort, mqttPort })
  const copied = await eventually('the files of the controller', async () => {
    const done = await after.command(
      ...here(copying ?? '')
        .split(' ')
        .slice(1),
      '--data-dir',
      dataDir,
    )
    return done.code === 0 && done
  })
  t.match(copied.stdout, /access-list, .*bramble\.conf written/)
  const mosquitto = await mosquittoProcess(t, join(etc, 'mosquitto/conf.d'), mqttPort)
  await mosquitto.start()
  const unit = await readFile(
    fileURLToPath(new URL(`../../systemd/examples/${basename(service?.split(' ')[1] ?? '')}`, import.meta.url)),
    'utf8',
  )
  const [, started = ''] = /^ExecStart=\/usr\/bin\/bramble-controller (.*)$/m.exec(unit) ?? []
  const watcher = startProgram(
    [
      command,
      ...here(started.replace('/run/mosquitto/mosquitto.pid', mosquitto.pidFile)).split(' '),
      '--data-dir',
      dataDir,
    ],
    (end) => t.teardown(end),
  )

  await t.test('nodes and pods are as before', async (t) => {
    await eventually('the controller is connected', () => connectedMetric(after))
    await after.nodesReady('pi-1')
    t.equal(await after.kubectl(...restarts), same, 'no container was restarted')
    await after.kubectlWith(aPod('more', 'pi-1'), 'apply', '-f', '-')
    await running(after, 'more')
    await after.kubectl('logs', 'more')
    const info = ['-n', 'kube-public', 'get', 'configmap', 'cluster-info', '-o', 'jsonpath={.data.mqttServers}']
    t.equal(await after.kubectl(...info), `mqtts://${address}:${mqttPort}`)
  })

  await t.test('a machine that joins has its rights without a restart', async () => {
    await joinFleet(after, 'pi-2', join(folder, 'pi-2'))
    const second = await startAgent(t, { dataDir: join(folder, 'pi-2'), dockerSocket: docker.socket })
    await after.nodesReady('pi-2')
    await after.kubectlWith(aPod('late', 'pi-2'), 'apply', '-f', '-')
    await running(after, 'late')
    await after.kubectl('delete', 'pod', 'late', '--now')
    await second.stop()
  })

  await t.test('a deleted node cannot connect any more', async (t) => {
    const identity = JSON.parse(await readFile(join(folder, 'pi-2/identity.json'), 'utf8'))
    const { ca, certificate, key } = identity
    const connect = () =>
      mqtt.connectAsync({
        ...{ protocol: 'mqtts', host: address, port: mqttPort, ca, cert: certificate, key, reconnectPeriod: 0 },
        connectTimeout: 5_000,
      })
    await (await connect()).endAsync()
    await after.kubectl('delete', 'node', 'pi-2')
    await eventually('its certificate is rejected', async () => {
      const client = await connect().catch(() => undefined)
      await client?.endAsync()
      return client === undefined
    })
    const rights = () => readFile(join(etc, 'mosquitto/bramble/access-list'), 'utf8')
    await eventually('it has no rights', async () => !(await rights()).includes('pi-2'))
    t.match(await rights(), /user system:node:pi-1\n/)
  })

  const transition = [
    ...['get', 'node', 'pi-1', '-o'],
    'jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].lastTransitionTime}',
  ]

  await t.test(
    'Mosquitto is killed and started again: no node becomes NotReady, and pods reach their nodes',
    async (t) => {
      const ready = await after.kubectl(...transition)
      await mosquitto.kill()
      await eventually('the controller has lost it', async () => !(await connectedMetric(after)))
      await mosquitto.start()
      await eventually('the controller is connected', () => connectedMetric(after))
      await after.kubectlWith(aPod('third', 'pi-1'), 'apply', '-f', '-')
      await running(after, 'third')
      t.equal(await after.kubectl(...transition), ready)
      t.equal(await after.kubectl(...restarts), same)
    },
  )

  await t.test('Mosquitto is killed and starts at once: all is there again within seconds', async (t) => {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-3' } }
    await after.kubectlWith(JSON.stringify(node), 'create', '-f', '-')
    const rights = () => readFile(join(etc, 'mosquitto/bramble/access-list'), 'utf8')
    await eventually('it has its rights', async () => (await rights()).includes('pi-3'))
    const connection = { host: address, port: mqttPort, dataDir, nodeName: 'pi-3' }
    await eventually('what is retained', () => retainedFor(connection))
    const ready = await after.kubectl(...transition)
    const connections = agent.lines.filter(isConnected).length
    await mosquitto.kill()
    const [killedMs, killedAt] = [performance.now(), new Date().toISOString()]
    const seconds = () => (performance.now() - killedMs) / 1_000
    await mosquitto.start()
    const took = new Map<string, number>([['Mosquitto accepts connections', seconds()]])
    const measured = async (what: string, check: () => Promise<boolean>) => {
      await eventually(what, check)
      took.set(what, seconds())
    }
    const renewed = ['-n', 'kube-node-lease', 'get', 'lease', 'pi-1', '-o', 'jsonpath={.spec.renewTime}']
    await Promise.all([
      // Mosquitto saved nothing: the controller has published it again.
      measured('all that is retained is there', () => retainedFor(connection)),
      measured('the agent is connected', async () => agent.lines.filter(isConnected).length > connections),
      measured('the node has renewed its lease', async () => (await after.kubectl(...renewed)) > killedAt),
    ])
    t.equal(await after.kubectl(...transition), ready, 'the node was Ready all the time')
    for (const [what, s] of took) {
      t.comment(`${what} after ${s.toFixed(1)} s`)
      t.ok(s < longestSeconds, `${what}: ${s.toFixed(1)} s`)
    }
  })
  await watcher.stop()
  await agent.stop()
})

test('another controller leads: it goes on behind the same Mosquitto, and nodes stay connected', {
  skip: noMosquitto || noEtcd,
  timeout: 300_000,
}, async (t) => {
  const mqttPort = await freePort()
  const settings = { mqttBroker: `mqtts://localhost:${mqttPort}` }
  const { controllers, places } = await startReplicas(t, { settings })
  const [first, second] = controllers
  const dataDir = places[1]?.dataDir ?? ''
  if (first === undefined || second === undefined) throw new Error('There are two controllers')
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' } }
  await first.kubectlWith(JSON.stringify(node), 'create', '-f', '-')
  // The standby keeps the files, too: this Mosquitto is on its machine.
  const files = join(dataDir, 'mosquitto')
  await eventually('the files', async () => (await readFile(join(files, 'access-list'), 'utf8')).includes('pi-1'))
  const mosquitto = await mosquittoProcess(t, files, mqttPort)
  await mosquitto.start()
  await eventually('the leader is connected', () => connectedMetric(first))
  const authority = await openAuthority(join(dataDir, 'authority'), Date.now())
  const { certificate, key } = issueNode(authority, { nodeName: 'pi-1', nowMs: Date.now() })
  const client = await mqtt.connectAsync({
    ...{ protocol: 'mqtts', host: 'localhost', port: mqttPort, ca: authority.certificate, cert: certificate, key },
    ...{ protocolVersion: 4, reconnectPeriod: 0 },
  })
  t.teardown(() => client.endAsync(true))
  let closed = 0
  const epochs: string[] = []
  const pods: string[] = []
  client.on('close', () => closed++)
  client.on('message', (topic, body) => {
    const message = JSON.parse(body.toString())
    if (topic.endsWith('/controller') && message.state === 'online') epochs.push(message.epoch)
    if (topic.endsWith('/desired')) pods.splice(0, pods.length, ...message.pods.map(podName))
  })
  await client.subscribeAsync(['bramble/v1/controller', 'bramble/v1/nodes/pi-1/desired'], { qos: 1 })
  await eventually('the first controller', () => new Set(epochs).size === 1)
  const renewed = ['-n', 'kube-node-lease', 'get', 'lease', 'pi-1', '-o', 'jsonpath={.spec.renewTime}']
  const beat = (retain: boolean) =>
    client.publishAsync('bramble/v1/nodes/pi-1/lease', '{"seq":1,"digest":""}', { qos: 1, retain })
  // Repeated as an agent does: one that comes before the controller has subscribed is delivered as retained, and does not count.
  await eventually('a lease of the node', async () => {
    await beat(true)
    return (await first.tryKubectl(...renewed)).stdout !== ''
  })
  first.program.kill('SIGKILL')
  await second.program.logged('Controller ready', 60_000)
  await eventually('the second controller', () => new Set(epochs).size === 2)
  await second.kubectlWith(aPod('web', 'pi-1'), 'apply', '-f', '-')
  await eventually('the pod', () => pods.includes('web'))
  t.equal((await second.tryKubectl(...renewed)).stdout, '', 'a retained heartbeat does not count')
  await eventually('a lease of the node', async () => {
    await beat(false)
    return (await second.tryKubectl(...renewed)).stdout !== ''
  })
  t.equal(closed, 0)
})

test('the authority is replaced in three steps, and Mosquitto follows each', {
  skip: noMosquitto,
  timeout: 300_000,
}, async (t) => {
  const dataDir = join(await temporaryFolder(t), 'controller')
  const mqttPort = await freePort()
  const controller = await startController(t, { dataDir, settings: { mqttBroker: `mqtts://localhost:${mqttPort}` } })
  const files = join(dataDir, 'mosquitto')
  const read = (name: string) => readFile(join(files, name), 'utf8').catch(() => '')
  await eventually('the files', async () => (await read('bramble.conf')) !== '')
  const mosquitto = await mosquittoProcess(t, files, mqttPort)
  await mosquitto.start()
  await eventually('the controller is connected', () => connectedMetric(controller))
  const keys = async () => {
    const authority = await openAuthority(join(dataDir, 'authority'), Date.now())
    return { ca: authority.trusted, ...issueNode(authority, { nodeName: 'pi-1', nowMs: Date.now() }) }
  }
  const canConnect = async ({ certificate, key }: { readonly certificate: string; readonly key: string }) => {
    mosquitto.reload()
    const { ca } = await keys()
    const settings = { ca, cert: certificate, key, reconnectPeriod: 0, connectTimeout: 20_000 }
    const client = await mqtt
      .connectAsync({ protocol: 'mqtts', host: 'localhost', port: mqttPort, ...settings })
      .catch(() => undefined)
    await client?.endAsync()
    return client !== undefined
  }
  const step = async (name: string) => {
    const done = await controller.command('certificates', 'rollover', name, '--force', '--data-dir', dataDir)
    t.equal(done.code, 0, `${name} ${done.stderr}`)
  }
  const first = await keys()
  t.equal(await canConnect(first), true)
  await step('begin')
  await eventually('two authorities', async () => (await read('ca.crt')).match(/BEGIN CERT/g)?.length === 2)
  // The other files of this step may not be there yet.
  await eventually('certificates of the first authority are still accepted', () => canConnect(first))
  await step('change-over')
  const second = await keys()
  await eventually(
    'a list of each authority',
    async () => (await read('revoked.crl')).match(/BEGIN X509/g)?.length === 2,
  )
  await eventually('certificates of the next authority', () => canConnect(second))
  // The certificate of the server changes a moment later.
  await eventually('those of the previous one are accepted', () => canConnect(first))
  await step('finish')
  await eventually('one authority', async () => (await read('ca.crt')).match(/BEGIN CERT/g)?.length === 1)
  await eventually('certificates of the previous authority are rejected', async () => !(await canConnect(first)))
  await eventually('those of the present one are accepted', () => canConnect(second))
  await eventually('the controller is connected', () => connectedMetric(controller))
})

test('the network of the fleet is turned off: what was retained of it is withdrawn', {
  skip: noMosquitto,
  timeout: 120_000,
}, async (t) => {
  const folder = await temporaryFolder(t)
  const dataDir = join(folder, 'controller')
  const mqttPort = await freePort()
  const settings = { mqttBroker: `mqtts://localhost:${mqttPort}` }
  const routed = await startController(t, { dataDir, settings: { ...settings, podNetwork: 'routed' } })
  await routed.kubectlWith(
    JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' } }),
    'create',
    '-f',
    '-',
  )
  const files = join(dataDir, 'mosquitto')
  await eventually('the files', async () => (await readFile(join(files, 'access-list'), 'utf8')).includes('pi-1'))
  const mosquitto = await mosquittoProcess(t, files, mqttPort)
  await mosquitto.start()
  const authority = await openAuthority(join(dataDir, 'authority'), Date.now())
  const { certificate, key } = issueNode(authority, { nodeName: 'pi-1', nowMs: Date.now() })
  const client = await mqtt.connectAsync({
    ...{ protocol: 'mqtts', host: 'localhost', port: mqttPort, ca: authority.certificate, cert: certificate, key },
    ...{ protocolVersion: 4, reconnectPeriod: 0 },
  })
  t.teardown(() => client.endAsync(true))
  const bodies = new Map<string, string>()
  client.on('message', (topic, body) => void bodies.set(topic, body.toString()))
  await client.subscribeAsync(['bramble/v1/network', 'bramble/v1/services/+'], { qos: 1 })
  await eventually('the network', () => bodies.size === 17 && [...bodies.values()].every((body) => body !== ''))
  await routed.program.stop()
  await startController(t, { dataDir, settings })
  await eventually('everything is withdrawn', () => [...bodies.values()].every((body) => body === ''))
  t.equal(bodies.size, 17)
})

function aPod(name: string, nodeName: string): string {
  return podManifest({ name, image, command: listening, spec: { nodeName } })
}

function podName({ metadata }: { readonly metadata: { readonly name: string } }): string {
  return metadata.name
}
