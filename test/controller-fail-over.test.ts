/** The controller that leads is killed or frozen: what was answered stays, and the fleet continues with another one. */
import { request } from 'node:https'
import { test } from 'tap'
import { type ApiAccess, readKubeconfig } from '../broker-controller/commands/connection/kubeconfig.ts'
import { apiClient } from '../daemon/api-client.ts'
import { systemClock } from '../daemon/clock.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { noEtcd } from './support/etcd.ts'
import { type Controller, joinFleet, startAgent } from './support/fleet.ts'
import { podManifest } from './support/manifests.ts'
import { image } from './support/pods.ts'
import { startReplicas } from './support/replicas.ts'
import { eventually } from './support/wait.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const kinds = { apiVersion: 'v1', kind: 'ConfigMap' }

type Seen = { readonly name: string; readonly n: number }

/** Every change of ConfigMaps from now on. A watch without a version would begin with what is there when the server reads it. */
async function watching(access: ApiAccess, signal: AbortSignal): Promise<readonly Seen[]> {
  const { url, ca, certificate, key } = access
  const seen: Seen[] = []
  const { body } = await apiClient(access).get(maps)
  const { resourceVersion } = (body as { readonly metadata: { readonly resourceVersion: string } }).metadata
  const settings = { ca, cert: certificate, key, signal }
  await new Promise<void>((resolve, reject) => {
    const sent = request(new URL(`${maps}?watch=true&resourceVersion=${resourceVersion}`, url), settings, (answer) => {
      resolve()
      let text = ''
      answer.setEncoding('utf8')
      answer.on('error', () => undefined)
      answer.on('data', (piece: string) => {
        const lines = `${text}${piece}`.split('\n')
        text = lines.pop() ?? ''
        for (const line of lines) {
          const { object } = JSON.parse(line)
          if (object.data?.n !== undefined) seen.push({ name: object.metadata.name, n: Number(object.data.n) })
        }
      })
    })
    sent.on('error', reject)
    sent.end()
  })
  return seen
}

/** Writes 1, 2, 3 … into one object through one controller, until `signal` aborts. Resolves with the last number that was answered. */
async function writing(name: string, access: ApiAccess, signal: AbortSignal): Promise<number> {
  const client = apiClient({ ...access, deadlineMs: 3_000 })
  const body = (n: number) => ({ ...kinds, metadata: { namespace: 'default', name }, data: { n: String(n) } })
  // The first leader may be killed before it has answered. 409: it had written.
  await eventually(`${name} is there`, async () => {
    const { status } = await client.post(maps, body(0))
    return status === 201 || status === 409
  })
  let answered = 0
  while (!signal.aborted) {
    const sent = answered + 1
    const answer = await client.patch(`${maps}/${name}`, { data: { n: String(sent) } }).catch(() => undefined)
    if (answer?.status === 200) answered = sent
    else await systemClock.sleep(100)
  }
  return answered
}

test('writers go on while leaders are killed: no answered write is lost, and a watch misses and repeats nothing', {
  skip: noEtcd,
  timeout: 300_000,
}, async (t) => {
  const { controllers, start } = await startReplicas(t, { count: 3, members: 3 })
  const [first, second, third] = controllers
  if (first === undefined || second === undefined || third === undefined) throw new Error('There are three controllers')
  const stop = new AbortController()
  const end = new AbortController()
  t.teardown(async () => {
    stop.abort()
    end.abort()
  })
  // Killed are the first two: this one stays, whether it leads or not.
  const access = await readKubeconfig(third.kubeconfig)
  const seen = await watching(access, end.signal)
  const writers = Array.from({ length: 8 }, (_, i) => writing(`w${i}`, access, stop.signal))
  let alive: Controller[] = [first, second]
  for (let round = 0; round < 4; round++) {
    const lengthBefore = seen.length
    await eventually('writes', async () => seen.length > lengthBefore + 20, { withinMs: 60_000 })
    const [next, other] = alive
    if (next === undefined || other === undefined) throw new Error('Two of them run')
    next.program.kill('SIGKILL')
    await next.program.ended
    const again = await start(controllers.indexOf(round % 2 === 0 ? first : second))
    alive = [other, again]
  }
  stop.abort()
  const answered = await Promise.all(writers)
  const client = apiClient(access)
  t.comment(`${answered.reduce((sum, n) => sum + n, 0)} answered writes, ${seen.length} events`)
  for (const [i, n] of answered.entries()) {
    t.ok(n > 0, `writer ${i} wrote`)
    const { body } = await client.get(`${maps}/w${i}`)
    const stored = Number((body as { data: { n: string } }).data.n)
    t.ok(stored === n || stored === n + 1, `the last answered write of ${i}, ${n}, or one without an answer: ${stored}`)
    await eventually('the last event', async () => seen.some((one) => one.name === `w${i}` && one.n === stored))
    const numbers = seen.filter(({ name }) => name === `w${i}`).map((one) => one.n)
    t.same(
      numbers,
      Array.from({ length: stored + 1 }, (_, number) => number),
      `each change of w${i}, once`,
    )
  }
})

test('of a leader that was frozen for longer than its lease no write is accepted', {
  skip: noEtcd,
  timeout: 300_000,
}, async (t) => {
  const { controllers } = await startReplicas(t)
  const [first, second] = controllers
  if (first === undefined || second === undefined) throw new Error('There are two controllers')
  first.program.kill('SIGSTOP')
  t.teardown(async () => first.program.kill('SIGCONT'))
  const late = first.tryKubectl('create', 'configmap', 'late')
  await second.program.logged('Controller ready', 60_000)
  await second.kubectl('create', 'configmap', 'present')
  first.program.kill('SIGCONT')
  t.match(await late, { code: 1 })
  t.equal(await first.program.ended, 1, 'it ends, for systemd to start it as a standby')
  t.ok(first.program.lines.some(({ message }) => message === 'Controller failed'))
  const names = () => second.kubectl('get', 'configmaps', '-o', 'name')
  // The first leader may have been frozen before it published the authorities.
  await eventually('the authorities', async () => (await names()).includes('kube-root-ca.crt'))
  t.equal(await names(), 'configmap/kube-root-ca.crt\nconfigmap/present\n')
})

test('etcd without a majority for longer than the lease: reads are answered, and one controller leads afterwards', {
  skip: noEtcd,
  timeout: 300_000,
}, async (t) => {
  const { controllers, etcd } = await startReplicas(t, { members: 3 })
  const [first, second] = controllers
  if (first === undefined || second === undefined) throw new Error('There are two controllers')
  await first.kubectl('create', 'configmap', 'before')
  const [, ...lost] = etcd.members
  for (const member of lost) await member.kill()
  await first.program.logged('Lease of the leader not renewed in time: MQTT connections are closed', 60_000)
  for (const one of controllers) {
    t.match(await one.kubectl('get', 'configmaps', '-o', 'name'), /configmap\/before/, 'reads are answered')
    const readiness = await one.tryKubectl('get', '--raw', '/readyz?verbose')
    t.match(readiness.stderr, /\[-\]etcd failed/)
  }
  const refused = await second.tryKubectl('--request-timeout=5s', 'create', 'configmap', 'between')
  t.equal(refused.code, 1, 'writes are refused')
  await Promise.all(lost.map((member) => member.start()))
  const [running] = await eventually('one of them leads', async () => {
    const found: Controller[] = []
    for (const one of controllers) {
      const { stdout } = await one.tryKubectl('get', '--raw', '/readyz?verbose')
      if (stdout.includes('[+]leading ok')) found.push(one)
    }
    return found.length === 1 && found
  })
  await running?.kubectl('create', 'configmap', 'after')
  t.match(await running?.kubectl('get', 'configmaps', '-o', 'name'), /configmap\/after\nconfigmap\/before/)
})

const runs =
  'jsonpath={.status.phase} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}'

test('the leader dies with its machine: the nodes stay Ready with another one, and no container is restarted', {
  skip: whyNoDockerd() || noEtcd,
  timeout: 300_000,
}, async (t) => {
  const { controllers, folder } = await startReplicas(t, { ownPids: true })
  const [first, second] = controllers
  if (first === undefined || second === undefined) throw new Error('There are two controllers')
  const docker = await startDockerd(t)
  await docker.importImage(image)
  const names = ['pi-1', 'pi-2']
  for (const name of names) await joinFleet(first, name, `${folder}/${name}`)
  const agents = await Promise.all(
    names.map((name) => startAgent(t, { dataDir: `${folder}/${name}`, dockerSocket: docker.socket })),
  )
  await second.nodesReady(...names)
  for (const name of names) {
    await second.kubectlWith(podManifest({ name, image, spec: { nodeName: name } }), 'apply', '-f', '-')
  }
  const states = () => Promise.all(names.map((name) => second.kubectl('get', 'pod', name, '-o', runs)))
  const before = await eventually('pods run', async () => {
    const found = await states()
    return found.every((one) => /^Running \S+ 0$/.test(one)) && found
  })
  await t.test('streams through the standby reach the nodes', async (t) => {
    t.match(await second.kubectl('exec', 'pi-1', '--', 'echo', 'through both'), /through both/)
    const piped = await second.kubectlWith('over standard input', 'exec', '-i', 'pi-2', '--', 'cat')
    t.equal(piped, 'over standard input')
    t.equal((await second.tryKubectl('logs', 'pi-1')).code, 0)
    t.match(await second.kubectl('get', '--raw', '/api/v1/nodes/pi-2/proxy/metrics'), /kubelet_node_name/)
    // A node that does not answer soon is left out.
    await eventually('usage is shown', async () => /pi-1/.test((await second.tryKubectl('top', 'pods')).stdout))
  })
  const killedMs = performance.now()
  const counts = agents.map((agent) => agent.lines.filter(isConnected).length)
  first.program.kill('SIGKILL')
  await second.program.logged('Controller ready', 60_000)
  const ledMs = performance.now()
  await eventually('agents are connected again', async () =>
    agents.every((agent, i) => agent.lines.filter(isConnected).length > (counts[i] ?? 0)),
  )
  t.comment(`leads after ${seconds(ledMs - killedMs)}, agents after ${seconds(performance.now() - killedMs)}`)
  await second.nodesReady(...names)
  // A pod that is created now runs: the whole way works.
  await second.kubectlWith(podManifest({ name: 'later', image, spec: { nodeName: 'pi-1' } }), 'apply', '-f', '-')
  await eventually('a new pod runs', async () =>
    /^Running/.test(await second.kubectl('get', 'pod', 'later', '-o', runs)),
  )
  t.comment(`a new pod runs after ${seconds(performance.now() - killedMs)}`)
  t.same(await states(), before, 'the same containers')
  const events = await second.kubectl('get', 'events', '-A', '-o', 'jsonpath={.items[*].reason}')
  t.notMatch(events, /NodeNotReady|TaintManagerEviction|Evicted|Killing/)
  const log = await second.kubectl('exec', 'later', '--', 'echo', 'hello').catch((error: unknown) => String(error))
  t.match(log, /hello/, 'exec through the new leader')
})

function isConnected({ message }: { readonly message: string }): boolean {
  return message === 'Connected to the control plane'
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
