/** Names of Services, pods and nodes in containers, on real parts: controller, agents and Docker on two machines. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { inSpace } from './support/machine-commands.ts'
import { image, listening } from './support/pods.ts'
import { type RoutedMachine, routedMachines, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

const outside = fileURLToPath(new URL('./support/outside-names.js', import.meta.url))
/** The C library and Node.js of this machine: no image with them can be pulled here. */
const folders = [...new Set(['/usr', '/lib', '/lib64', dirname(process.execPath)])]
const nodeProgram = process.execPath

const client = (name: string, nodeName: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    nodeName,
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'main',
        image,
        command: listening,
        volumeMounts: folders.map((mountPath, index) => ({ name: `folder-${index}`, mountPath, readOnly: true })),
      },
    ],
    volumes: folders.map((path, index) => ({ name: `folder-${index}`, hostPath: { path } })),
    ...spec,
  },
})

/** Has port 53 of pi-2, as Pi-hole has, so that the name server of that machine is not reached; answers with the address of the client. */
const ownServer = () => {
  const server = [
    `const send = function (_, { port, address }) { this.send(address, port, address) }`,
    `require('dgram').createSocket('udp4').on('message', send).bind(5353)`,
    `require('net').createServer((socket) => socket.end(socket.remoteAddress)).listen(5353, '0.0.0.0')`,
  ].join(';')
  const pod = client('dns', 'pi-2')
  const ports = ['UDP', 'TCP'].map((protocol) => ({ containerPort: 5353, hostPort: 53, protocol }))
  const containers = pod.spec.containers.map((main) => ({ ...main, command: [nodeProgram, '-e', server], ports }))
  return { ...pod, spec: { ...pod.spec, containers } }
}
const askings = {
  udp: `const socket = require('dgram').createSocket('udp4').on('message', (answer) => { console.log(String(answer)); socket.close() })
    socket.send('?', 53, process.argv[1])`,
  tcp: `require('net').connect(53, process.argv[1]).on('data', (answer) => console.log(String(answer)))`,
}

const many = Array.from({ length: 120 }, (_, index) => `10.200.1.${index + 1}`)

const objects = [
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web' },
    spec: { ports: [{ name: 'http', port: 80 }] },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'db' },
    spec: { clusterIP: 'None', selector: { app: 'db' }, ports: [{ name: 'sql', port: 5432 }] },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db' },
    spec: {
      serviceName: 'db',
      replicas: 2,
      podManagementPolicy: 'Parallel',
      selector: { matchLabels: { app: 'db' } },
      template: {
        metadata: { labels: { app: 'db' } },
        spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'main', image, command: listening }] },
      },
    },
  },
  { apiVersion: 'v1', kind: 'Service', metadata: { name: 'many' }, spec: { clusterIP: 'None', ports: [{ port: 80 }] } },
  ...[many.slice(0, 90), many.slice(90)].map((addresses, index) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `many-${index}`, labels: { 'kubernetes.io/service-name': 'many' } },
    addressType: 'IPv4',
    endpoints: addresses.map((address) => ({ addresses: [address] })),
    ports: [{ port: 80 }],
  })),
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'out' },
    spec: { type: 'ExternalName', externalName: 'db.outside.example' },
  },
  client('one', 'pi-1'),
  client('two', 'pi-2'),
  client('host', 'pi-1', { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' }),
  client('machine', 'pi-1', { dnsPolicy: 'Default' }),
  client('own', 'pi-1', { dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.1'], searches: ['a.example'] } }),
]

/** On the machine there is a name server at the first address of its resolv.conf. */
async function withOutside(t: Test, machine: RoutedMachine): Promise<void> {
  const text = await readFile('/etc/resolv.conf', 'utf8')
  const address = /^nameserver\s+(\d+\.\d+\.\d+\.\d+)/m.exec(text)?.[1] ?? ''
  if (!address.startsWith('127.')) await machine.run('ip', 'address', 'add', `${address}/32`, 'dev', 'lo')
  const [file = '', ...args] = inSpace(machine.space, process.execPath, outside, address)
  const program = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(async () => {
    program.kill('SIGKILL')
    if (program.exitCode === null && program.signalCode === null) await once(program, 'exit')
  })
  await once(program.stdout, 'data')
}

test('pods resolve names', { skip: whyNoRoutedMachines() }, async (t) => {
  const machines = await routedMachines(t)
  const { controller, first, second, stranger, within } = machines
  const { kubectl, kubectlWith } = controller
  for (const machine of [first, second]) await withOutside(t, machine)
  let agent = await first.startAgent()
  await second.startAgent()
  await controller.nodesReady('pi-1', 'pi-2')
  for (const object of [...objects, ownServer()]) await kubectlWith(JSON.stringify(object), 'create', '-f', '-')
  const pods = ['one', 'two', 'host', 'machine', 'own', 'dns', 'db-0', 'db-1']
  await eventually('the StatefulSet has its pods', async () => {
    return (await controller.tryKubectl('get', 'pod', 'db-0', 'db-1')).code === 0
  })
  await kubectl('wait', '--for=condition=Ready', ...pods.map((pod) => `pod/${pod}`), '--timeout=120s')

  /** The addresses that the C library finds; '' for a name that does not exist. */
  const addresses = async (pod: string, name: string) => {
    const { stdout } = await within(pod, `/usr/bin/getent ahostsv4 ${name} | /usr/bin/cut -d' ' -f1 | /usr/bin/sort -u`)
    return stdout.trim().split('\n').sort().join(' ')
  }
  const read = async (...what: readonly string[]) => (await kubectl('get', ...what)).trim()
  const podIP = (pod: string) => read('pod', pod, '-o', 'jsonpath={.status.podIP}')
  const clusterIP = await read('service', 'web', '-o', 'jsonpath={.spec.clusterIP}')
  const databases = [await podIP('db-0'), await podIP('db-1')]

  await t.test('a Service by its name, by the domains that are searched, and on each node', async (t) => {
    await eventually('the name is known', async () => (await addresses('one', 'web')) === clusterIP)
    for (const name of ['web', 'web.default', 'web.default.svc', 'web.default.svc.cluster.local.']) {
      t.equal(await addresses('one', name), clusterIP, name)
    }
    await eventually('also on the other node', async () => (await addresses('two', 'web')) === clusterIP)
    t.equal(await addresses('one', 'none'), '')
  })

  await t.test('pods of a StatefulSet, also by their addresses', async (t) => {
    const all = [...databases].sort().join(' ')
    for (const pod of ['one', 'two'])
      await eventually(`both are found on the node of ${pod}`, async () => (await addresses(pod, 'db')) === all)
    for (const [index, address] of databases.entries()) {
      t.equal(await addresses('one', `db-${index}.db`), address)
      const { stdout } = await within('one', `/usr/bin/getent hosts ${address}`)
      t.match(stdout, `db-${index}.db.default.svc.cluster.local`)
    }
    const dashed = databases[0]?.replaceAll('.', '-')
    t.equal(await addresses('one', `${dashed}.default.pod.cluster.local`), databases[0])
    const script = `require('dns').promises.resolveSrv('_sql._tcp.db.default.svc.cluster.local').then((r) => console.log(JSON.stringify(r)))`
    const { stdout } = await within('one', `${nodeProgram} -e "${script}"`)
    t.match(
      JSON.parse(stdout)
        .map(({ name, port }: { name: string; port: number }) => `${name} ${port}`)
        .sort(),
      ['db-0.db.default.svc.cluster.local 5432', 'db-1.db.default.svc.cluster.local 5432'],
    )
  })

  await t.test('names of nodes, and many addresses over TCP', async () => {
    await eventually('the node', async () => (await addresses('two', 'pi-1.node.cluster.local')) === first.address)
    await eventually('all addresses', async () => (await addresses('one', 'many')) === [...many].sort().join(' '))
  })

  await t.test('names of other servers, and an alias for one', async (t) => {
    await eventually('the other server', async () => (await addresses('one', 'outside.example')) === '192.0.2.80')
    await eventually('the alias', async () => (await addresses('one', 'out')) === '192.0.2.80')
    t.equal(await addresses('one', 'none.example'), '')
  })

  await t.test('each policy has its resolv.conf', async (t) => {
    const conf = async (pod: string) => (await within(pod, 'cat /etc/resolv.conf')).stdout
    const cluster =
      /^search default\.svc\.cluster\.local svc\.cluster\.local cluster\.local.*\nnameserver 169\.254\.20\.10\noptions ndots:5\n$/
    t.match(await conf('one'), cluster)
    t.match(await conf('host'), cluster)
    t.equal(await addresses('host', 'web'), clusterIP)
    t.notMatch(await conf('machine'), /169\.254/)
    t.equal(await conf('own'), 'search a.example\nnameserver 192.0.2.1\n')
  })

  await t.test('a stranger on the link gets no answers', async (t) => {
    await stranger.run('ip', 'route', 'add', '169.254.20.10/32', 'via', first.address)
    const question = [
      `const { Resolver } = require('dns').promises`,
      `const resolver = new Resolver({ timeout: 1000, tries: 1 })`,
      `resolver.setServers(['169.254.20.10'])`,
      `resolver.resolve4('web.default.svc.cluster.local').then(console.log, ({ code }) => console.log(code))`,
    ].join(';')
    t.equal((await stranger.run(process.execPath, '-e', question)).trim(), 'ETIMEOUT')
  })

  await t.test('a pod has port 53 of the node beside the name server', async () => {
    for (const [protocol, asking] of Object.entries(askings)) {
      const limited = `setTimeout(() => process.exit(1), 5000).unref(); ${asking}`
      await eventually(`an answer by ${protocol}`, async () => {
        const { stdout } = await stranger.tryRun(process.execPath, '-e', limited, second.address)
        return stdout.trim() === stranger.address
      })
    }
  })

  await t.test('names are back soon after the agent was killed', async (t) => {
    agent.kill('SIGKILL')
    await agent.ended
    t.equal(await addresses('one', 'web'), '')
    agent = await first.startAgent()
    const startedMs = Date.now()
    await agent.logged('Names of the fleet are answered')
    t.comment(`answered ${Date.now() - startedMs} ms after the start of the process`)
    await eventually('the name is back', async () => (await addresses('one', 'web')) === clusterIP)
  })

  await t.test('names are answered after a reboot without a controller', async (t) => {
    await eventually('all names are back', async () => (await addresses('one', 'db-1.db')) === databases[1])
    controller.program.kill('SIGKILL')
    await agent.stop()
    await first.run('ip', 'address', 'delete', '169.254.20.10/32', 'dev', 'lo')
    agent = await first.startAgent()
    await agent.logged('Names of the fleet are answered')
    const [main] = await first.docker.docker.listContainers({
      filters: JSON.stringify({ label: ['io.kubernetes.pod.name=one', 'io.kubernetes.container.name=main'] }),
    })
    t.ok(main, 'the pod still runs')
    const looked = await first.docker.docker.getContainer(main?.Id ?? '').exec({
      Cmd: ['/usr/bin/getent', 'ahostsv4', 'db-1.db'],
      AttachStdout: true,
    })
    const stream = await looked.start({})
    let text = ''
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    await once(stream, 'end')
    t.match(text, databases[1] ?? 'an address')
  })
})
