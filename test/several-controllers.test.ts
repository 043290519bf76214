/** Several controllers on one store in etcd, as a user starts them: one leads, the others answer reads and pass on the rest. */
import { readFile } from 'node:fs/promises'
import { get } from 'node:https'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { identityHeaderValue } from '../broker-controller/apiserver/forwarding/remote-identity.ts'
import { identityHeader } from '../broker-controller/apiserver/proxy/proxy-headers.ts'
import { readKubeconfig } from '../broker-controller/commands/connection/kubeconfig.ts'
import { handOverMs } from './replicas/hand-over.ts'
import { noEtcd as skip } from './support/etcd.ts'
import type { Controller } from './support/fleet.ts'
import { type ReplicaPlace, startReplicas } from './support/replicas.ts'
import { timeLimit } from './support/time-limit.ts'
import { eventually } from './support/wait.ts'

const metric = 'leader_election_master_status'

async function leads(controller: Controller): Promise<boolean> {
  const text = await controller.kubectl('get', '--raw', '/metrics')
  return text.includes(`${metric}{name="bramble-controller"} 1`)
}

const lease = ['-n', 'kube-system', 'get', 'lease', 'bramble-controller', '-o', 'jsonpath={.spec.leaseTransitions}']

test('a standby answers kubectl, and leads when the leader ends', { skip, timeout: 300_000 }, async (t) => {
  const { controllers, places, start } = await startReplicas(t)
  const [first, second] = controllers
  if (first === undefined || second === undefined) throw new Error('There are two controllers')

  await t.test('readiness and metrics show which of the two leads', async (t) => {
    t.match(await first.kubectl('get', '--raw', '/readyz?verbose'), /\[\+\]leading ok/)
    t.match(await second.kubectl('get', '--raw', '/readyz?verbose'), /\[\+\]standby ok/)
    t.equal(await leads(first), true)
    t.equal(await leads(second), false)
    for (const one of controllers) {
      t.match(await one.kubectl('get', '--raw', '/metrics'), /^apiserver_storage_size_bytes\{.*\} [1-9]\d+$/m)
    }
    // Each reads again every two seconds which others there are.
    await eventually('the standby has read both', async () =>
      /^bramble_controllers 2$/m.test(await second.kubectl('get', '--raw', '/metrics')),
    )
  })

  await t.test('the MQTT port of the leader alone is open', async (t) => {
    t.same(await Promise.all(places.map(connectionTo)), ['connected', 'ECONNREFUSED'])
  })

  await t.test('writes by the standby are those of the leader, and are visible at both at once', async (t) => {
    await second.kubectl('create', 'namespace', 'web')
    await second.kubectl('-n', 'web', 'create', 'configmap', 'a', '--from-literal=word=sesame')
    for (const one of controllers) {
      t.equal(await one.kubectl('-n', 'web', 'get', 'configmap', 'a', '-o', 'jsonpath={.data.word}'), 'sesame')
    }
    await first.kubectl('-n', 'web', 'create', 'service', 'clusterip', 'one', '--tcp=80')
    await second.kubectl('-n', 'web', 'create', 'service', 'clusterip', 'two', '--tcp=80')
    const addresses = ['-n', 'web', 'get', 'services', '-o', 'jsonpath={.items[*].spec.clusterIP}']
    const taken = (await second.kubectl(...addresses)).split(' ')
    t.equal(new Set(taken).size, 2, `addresses ${taken}`)
    t.equal(await second.kubectl(...lease), '0', 'leases are those of the leader')
    t.match(await second.kubectl('auth', 'whoami'), /kubernetes-admin/)
    const denied = await second.tryKubectl('--as=guest', '-n', 'web', 'create', 'configmap', 'b')
    t.match(denied, { code: 1, stderr: /User "guest" cannot create resource "configmaps"/ })
  })

  await t.test('the header with which controllers pass an identity on has no effect from anyone else', async (t) => {
    const master = identityHeaderValue({ user: 'admin', groups: ['system:masters'] })
    for (const { kubeconfig } of controllers) {
      const { url, ca } = await readKubeconfig(kubeconfig)
      for (const path of ['/api/v1/secrets', '/apis/coordination.k8s.io/v1/leases']) {
        t.equal(await statusOf(new URL(path, url), ca, { [identityHeader]: master }), 403, path)
      }
    }
  })

  await t.test('the key of Secrets is not replaced while another controller runs', async (t) => {
    const rotated = await first.command('secrets', 'rotate-key', '--data-dir', first.dataDir)
    t.match(rotated, { code: 1, stderr: /Other controllers run \(https:.*stop them first/ })
  })

  await t.test('the leader ends: the standby leads', async (t) => {
    const beganMs = performance.now()
    const ended = first.program.stop()
    await second.program.logged('Controller ready')
    const tookMs = Math.round(performance.now() - beganMs)
    const { ms, text } = timeLimit(handOverMs)
    t.ok(tookMs <= ms, `handed over in ${tookMs} ms: ${text}`)
    t.equal(await ended, 0)
    await eventually('a write', async () => (await second.tryKubectl('create', 'configmap', 'late')).code === 0)
    t.equal(await second.kubectl(...lease), '1')
    const back = await start(0)
    t.equal(await leads(back), false)
    await back.kubectl('delete', 'configmap', 'late')
  })
})

function connectionTo({ address, mqttPort }: ReplicaPlace): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(mqttPort, address)
    socket.once('connect', () => {
      socket.destroy()
      resolve('connected')
    })
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
  })
}

function statusOf(url: URL, ca: string, headers: { readonly [name: string]: string }): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = get(url, { ca, headers, agent: false }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    sent.once('error', reject)
  })
}

/** The lines of the first block of commands in a section of control-plane.md. */
async function commandsOf(section: string): Promise<readonly string[]> {
  const page = await readFile(fileURLToPath(new URL('../../docs/control-plane.md', import.meta.url)), 'utf8')
  const [, block = ''] = page.slice(page.indexOf(`## ${section}`)).split('```', 2)
  return block
    .split('\n')
    .slice(1)
    .filter((line) => line !== '' && !line.startsWith('#'))
}

test('one controller becomes three as control-plane.md describes it', { skip, timeout: 300_000 }, async (t) => {
  const { controllers, folder, places, start } = await startReplicas(t, { count: 3, joined: 1 })
  const [first] = controllers
  if (first === undefined) throw new Error('There is one controller')
  const [create = '', join = '', begin = '', ...more] = await commandsOf('From one controller to three')
  t.same([begin, ...more], ['systemctl start bramble-controller'])
  await first.kubectl('-n', 'default', 'create', 'secret', 'generic', 'hidden', '--from-literal=word=sesame')
  for (const number of [1, 2]) {
    const place = places[number]
    if (place === undefined) throw new Error(`There is no place ${number}`)
    const here = ['--data-dir', first.dataDir]
    const created = await first.command(...create.split(' ').slice(1), ...here)
    t.equal(created.code, 0, created.stderr)
    const line = created.stdout.trim().split(' ')
    t.same(
      line.filter((word) => word.startsWith('--')),
      join.split(' ').filter((word) => word.startsWith('--')),
      'the printed command has the options that the page shows',
    )
    const config = `${place.dataDir}.joined.json`
    const own = ['--data-dir', place.dataDir, '--config', config, '--advertise-address', place.address]
    const other = line.map((word) => (/^[0-9a-f]{64}$/.test(word) ? 'a'.repeat(64) : word))
    const refused = await first.command(
      ...other.slice(1),
      '--data-dir',
      `${folder}/none`,
      '--config',
      `${folder}/none.json`,
    )
    t.match(refused, { code: 1, stderr: /The certificate key is not the one that was printed/ })
    const [, id = ''] = /--token (\w+)\./.exec(created.stdout) ?? []
    const asToken = ['-n', 'kube-system', '--as', `system:bootstrap:${id}`, '--as-group', 'system:bootstrappers']
    const mayGet = async (what: string) =>
      (await first.tryKubectl('auth', 'can-i', 'get', what, ...asToken)).stdout.trim()
    t.equal(await mayGet(`secret/bramble-control-plane-${id}`), 'yes')
    t.equal(await mayGet('secrets'), 'no', 'the token reads nothing else')
    const joined = await first.command(...line.slice(1), ...own)
    t.match(joined, { code: 0, stdout: /Start the controller: systemctl start bramble-controller/ }, joined.stderr)
    const again = await first.command(...line.slice(1), ...own)
    t.match(again, { code: 1, stderr: /has the state of a controller.*give --replace/ })
    const used = await first.command(
      ...line.slice(1),
      '--data-dir',
      `${folder}/late`,
      '--config',
      `${folder}/late.json`,
    )
    t.match(used, { code: 1, stderr: /^Cannot join: .*Create a new token with/ }, 'one line joins one controller')
    const controller = await start(number, true, config)
    const word = await controller.kubectl('get', 'secret', 'hidden', '-o', 'jsonpath={.data.word}')
    t.equal(Buffer.from(word, 'base64').toString(), 'sesame', 'it has the key of Secrets')
  }
  const forever = await first.command('token', 'create', '--control-plane', '--ttl', '0', '--data-dir', first.dataDir)
  t.match(forever, { code: 64, stderr: /must not stay readable/ })
  const info = ['-n', 'kube-public', 'get', 'configmap', 'cluster-info', '-o', 'jsonpath={.data.mqttServers}']
  await eventually('all addresses', async () => (await first.kubectl(...info)).split('\n').length === 3)
  const contexts = ['config', 'get-contexts', '-o', 'name']
  const others = await eventually('contexts of the others', async () => {
    const names = (await first.kubectl(...contexts)).split('\n').filter((name) => /^bramble-\d/.test(name))
    return names.length === 2 && names
  })
  for (const [i, context] of others.entries()) {
    t.match(await first.kubectl('--context', context, 'get', '--raw', '/readyz?verbose'), /\[\+\]standby ok/)
    const name = places[i + 1]?.address ?? ''
    t.equal(
      await first.kubectl('--tls-server-name', name, 'get', '--raw', '/readyz'),
      'ok',
      'its certificate has all names',
    )
  }
  const slice = ['get', 'endpoints', 'kubernetes', '-o', 'jsonpath={.subsets[*].addresses[*].ip}']
  t.match(await first.kubectl(...slice), /^127\.\S+$/, 'controllers with other ports are not endpoints of the Service')
  const token = ['-n', 'kube-system', 'get', 'secrets', '-o', 'name']
  await eventually('no keys are left', async () => !(await first.kubectl(...token)).includes('bramble-control-plane-'))
})
